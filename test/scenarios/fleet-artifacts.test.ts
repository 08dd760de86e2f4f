import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Artifacts } from "@berth/client";
import { isFault, redisKeys, stagedAboveBytes } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test as withFleet } from "../support/fleet.ts";

const test = withFleet.extend<{ directory: string }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  directory: async ({}, use) => {
    const directory = await mkdtemp(join(tmpdir(), "berth-artifacts-"));
    await use(directory);
    await rm(directory, { recursive: true, force: true });
  },
});

describe("in the fleet", () => {
  test("a job's artifacts are published live, are in its result, and are fetched by id", async ({
    fleet,
    directory,
  }) => {
    await fleet.worker("worker-1", { BERTH_ARTIFACTS: directory });
    const acme = fleet.client().tenant("acme");
    const source = `
import os
os.mkdir('artifacts'); open('artifacts/note.md', 'w').write('# hi'); open('artifacts/big.bin', 'wb').write(bytes(range(256)) * 1000)`;
    const job = acme.code("python", source);
    const events = [];
    for await (const event of job.events()) events.push(event);
    const announced = events.flatMap((event) => (event.type === "artifact" ? [event.artifact] : []));
    const value = await job;
    expect(value.artifacts?.map(({ path, mime }) => [path, mime])).toEqual([
      ["artifacts/big.bin", "application/octet-stream"],
      ["artifacts/note.md", "text/markdown"],
    ]);
    expect(announced.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual(value.artifacts);
    expect(events.at(-1)?.type).toBe("finished");
    const [big, note] = value.artifacts ?? [];
    const redis = fleet.redis.connect();
    const here = new Artifacts(redis, { directory });
    expect((await here.bytes(big?.id ?? ""))?.length).toBe(256_000);
    const elsewhere = new Artifacts(redis);
    expect((await elsewhere.bytes(note?.id ?? ""))?.toString()).toBe("# hi");
    await expect(elsewhere.bytes(big?.id ?? "")).rejects.toSatisfy((error) =>
      isFault(error, "artifact-elsewhere"),
    );
  });

  test("what a conversation persisted outlives the worker that did it", async ({ fleet, directory }) => {
    const env = { BERTH_ARTIFACTS: directory };
    const first = await fleet.worker("worker-1", env);
    const acme = fleet.client().tenant("acme");
    const content = randomBytes(200_000).toString("hex");
    const mine = { session: "one", agent: "coder" };
    await acme.write("plan", content, { persist: true, ...mine });
    await acme.write("plan", "workspace", { ...mine, session: "two" });
    first.signal("SIGTERM");
    await first.ended();
    await fleet.worker("worker-2", env);
    const read = await acme.read("plan", mine);
    expect(read.content).toBe(content);
    expect(read.persisted).toMatchObject([{ path: "plan", size: content.length }]);
    expect((await acme.read("plan", { ...mine, session: "two" })).content).toBe("workspace");
  });

  test("expired artifacts are swept by any worker", async ({ fleet, directory }) => {
    await fleet.worker("worker-1", { BERTH_ARTIFACTS: directory });
    const acme = fleet.client().tenant("acme");
    const value = await acme.write("f", "x".repeat(100_000), { persist: true });
    const redis = fleet.redis.connect();
    const artifacts = new Artifacts(redis, { directory });
    const id = value.artifacts?.[0]?.id ?? "";
    const meta = await artifacts.meta(id);
    expect(meta).toMatchObject({ tenant: "acme", size: 100_000 });
    // As if its thirty days were over.
    await redis.hset(redisKeys.artifact(id), "expires", 1);
    await redis.zadd(redisKeys.artifactExpiry, 1, id);
    await expect.poll(() => redis.keys("berth:*artifact*")).toEqual([]);
  });

  test("a request too large for the queue arrives whole", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const acme = fleet.client().tenant("acme");
    const bytes = randomBytes(stagedAboveBytes * 20);
    const written = await acme.write("big", bytes);
    expect(written).toMatchObject({ outcome: { kind: "done" }, size: bytes.length });
    const listed = await acme.exec("wc -c < big");
    expect(listed.stdout?.trim()).toBe(`${bytes.length}`);
    const redis = fleet.redis.connect();
    expect(await redis.keys("berth:*staged*"), "nothing is left beside the queue").toEqual([]);
  });
});
