import { randomBytes } from "node:crypto";
import type { ArtifactOwner } from "@berth/ledger";
import { isFault, jobRequest, redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { owner, run, type TestStore, test } from "../support/artifacts.ts";

const done = { kind: "done" };
const persist = (path: string, content: string) => ({ kind: "write", path, content, persist: true }) as const;
const read = (path: string) => ({ kind: "read", path }) as const;

async function usedBytes({ store }: TestStore): Promise<number> {
  return (await store.usage("acme")).bytes;
}

describe("file written to persist", () => {
  test("a file written to persist is in the workspace, and an artifact besides", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const result = await run(artifacts, sandbox, persist("/workspace/./notes/plan.md", "# plan"));
    expect(result).toMatchObject({ outcome: done, value: { size: 6, created: true } });
    expect(result.value.artifacts).toEqual([
      expect.objectContaining({ path: "notes/plan.md", size: 6, mime: "text/markdown" }),
    ]);
    expect((await sandbox.exec({ command: "cat notes/plan.md" })).output.totalBytes).toBe(6);
    const [ref] = result.value.artifacts ?? [];
    expect((await artifacts.store.reader.bytes(ref?.id ?? ""))?.toString()).toBe("# plan");
    expect(ref?.expiresAtMs).toBeGreaterThan(Date.now() + 29 * 24 * 3_600_000);
  });

  test("a file written to persist is what its conversation reads, before the workspace's file and after it is gone", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    await run(artifacts, sandbox, persist("f", "kept\n"));
    for (const command of ["echo changed > f", "rm f"]) {
      await sandbox.exec({ command });
      const result = await run(artifacts, sandbox, read("./f"));
      expect(result).toMatchObject({ outcome: done, value: { content: "kept\n", size: 5 } });
      expect(result.value.persisted).toEqual([expect.objectContaining({ path: "f", size: 5 })]);
    }
    const again = await run(artifacts, sandbox, persist("f", "newer\n"));
    expect((await run(artifacts, sandbox, read("f"))).value.content).toBe("newer\n");
    expect(await usedBytes(artifacts), "only the newer is stored").toBe(6);
    expect(again.value.created).toBe(true);
  });

  test.for<[string, Partial<ArtifactOwner>]>([
    ["another session", { session: "other" }],
    ["another agent", { agent: "other" }],
    ["another tenant in a shared sandbox", { tenant: "other" }],
  ])("a file written to persist is not what %s reads", async ([_, of], { host, artifacts }) => {
    const sandbox = await host.sandbox();
    await run(artifacts, sandbox, persist("f", "ours"));
    await sandbox.files.write("f", "workspace");
    const theirs = await run(artifacts, sandbox, read("f"), { of });
    expect(theirs.value.content).toBe("workspace");
    expect(theirs.value.persisted).toBeUndefined();
    await run(artifacts, sandbox, { ...persist("f", "theirs") }, { of });
    expect((await run(artifacts, sandbox, read("f"))).value.content).toBe("ours");
  });

  test("a file written to persist is read in lines and ranges like any other, also when it is large", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const lines = Array.from({ length: 200_000 }, (_, index) => `${index + 1}\n`).join("");
    await run(artifacts, sandbox, persist("numbers", lines));
    await sandbox.exec({ command: "rm numbers" });
    const far = await run(artifacts, sandbox, { ...read("numbers"), line: 150_000, lines: 2 });
    expect(far.value).toMatchObject({
      content: "150000\n150001\n",
      size: lines.length,
      lines: { first: 150_000, last: 150_001, more: true },
    });
    const bytes = await run(artifacts, sandbox, { ...read("numbers"), as: "bytes", offset: 2, bytes: 4 });
    expect(Buffer.from(bytes.value.content ?? "", "base64").toString()).toBe("2\n3\n".slice(0, 4));
  });

  test("a file written to persist is listed beside the workspace", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    await run(artifacts, sandbox, persist("a/one", "1"));
    await run(artifacts, sandbox, persist("b", "2"));
    await sandbox.exec({ command: "rm -r a" });
    const all = await run(artifacts, sandbox, { kind: "list" });
    expect(all.value.entries?.map(({ path }) => path)).toEqual(["b"]);
    expect(all.value.persisted?.map(({ path }) => path)).toEqual(["a/one", "b"]);
    const below = await run(artifacts, sandbox, { kind: "list", path: "a" });
    expect(below).toMatchObject({ outcome: done, value: { entries: [], count: 0 } });
    expect(below.value.persisted?.map(({ path }) => path)).toEqual(["a/one"]);
    expect((await run(artifacts, sandbox, { kind: "list", path: "c" })).outcome).toMatchObject({
      code: "not-found",
    });
  });

  test("a file written to persist is dropped when its path is removed or moved", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    for (const path of ["a/one", "a/two", "ab"]) await run(artifacts, sandbox, persist(path, path));
    const one = await run(artifacts, sandbox, { kind: "remove", path: "a/one" });
    expect(one).toMatchObject({ outcome: done, value: { count: 1, persisted: [{ path: "a/one" }] } });
    expect((await run(artifacts, sandbox, read("a/one"))).outcome).toMatchObject({ code: "not-found" });
    await sandbox.exec({ command: "rm -r a" });
    const rest = await run(artifacts, sandbox, { kind: "remove", path: "a", recursive: true });
    expect(rest).toMatchObject({ outcome: done, value: { persisted: [{ path: "a/two" }] } });
    const again = await run(artifacts, sandbox, { kind: "remove", path: "a", recursive: true });
    expect(again.outcome).toMatchObject({ code: "not-found" });
    expect(await usedBytes(artifacts)).toBe(2);
    expect((await run(artifacts, sandbox, read("ab"))).value.content).toBe("ab");
  });

  test("a file written to persist is forgotten when it expires, and its bytes with it", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const brief = artifacts.with({ persistedMs: 50 });
    await run(brief, sandbox, persist("f", "kept"));
    await sandbox.files.write("f", "workspace");
    await expect.poll(async () => (await run(brief, sandbox, read("f"))).value.content).toBe("workspace");
    expect((await artifacts.store.sweep()).expired).toBe(1);
    expect(await artifacts.redis.exists(redisKeys.persisted(owner.key, "acme", "default", "main"))).toBe(0);
    expect(await artifacts.keys()).toEqual([]);
  });
});

describe("what cannot be persisted", () => {
  test("a file that cannot be persisted is written with the reason, and no older one is read for it", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    const some = artifacts.with({ quotaBytes: 100 });
    await run(some, sandbox, persist("f", "old"));
    const result = await run(some, sandbox, persist("f", "x".repeat(101)));
    expect(result).toMatchObject({ outcome: done, value: { size: 101, artifactsRefusedCount: 1 } });
    expect(result.value.artifactsRefused).toEqual([expect.objectContaining({ path: "f", code: "quota" })]);
    const after = await run(some, sandbox, read("f"));
    expect(after.value.content).toHaveLength(101);
    expect(after.value.persisted).toBeUndefined();
  });

  test("a file persisted over one of the same size fits a full quota", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    const some = artifacts.with({ quotaBytes: 100_000 });
    for (const _ of [1, 2, 3]) {
      const content = randomBytes(45_000).toString("hex");
      const { value } = await run(some, sandbox, persist("f", content));
      expect(value.artifactsRefused).toBeUndefined();
    }
    expect(await usedBytes(some)).toBe(90_000);
    expect(await artifacts.files()).toHaveLength(1);
  });

  test("one persisted file too many of a conversation is refused", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    const few = artifacts.with({ maxPersisted: 2 });
    for (const path of ["a", "b"]) await run(few, sandbox, persist(path, path));
    expect((await run(few, sandbox, persist("c", "c"))).value.artifactsRefused).toEqual([
      expect.objectContaining({ path: "c", code: "too-many" }),
    ]);
    expect((await run(few, sandbox, persist("a", "again"))).value.artifactsRefused).toBeUndefined();
  });

  test("appended content is not persisted, nor anything where no artifacts are kept", async ({
    host,
    artifacts,
  }) => {
    const sandbox = await host.sandbox();
    expect(jobRequest.safeParse({ ...persist("f", "x"), append: true }).success).toBe(false);
    const result = await run(artifacts, sandbox, persist("f", "x"), { artifacts: undefined });
    expect(result.outcome).toMatchObject({ kind: "refused", code: "not-kept" });
    expect((await sandbox.files.list("")).items).toEqual([]);
  });

  test("a worker that no longer holds the sandbox cannot persist a file", async ({ host, artifacts }) => {
    const sandbox = await host.sandbox();
    await artifacts.redis.hset(redisKeys.lease(owner.key), { worker: "worker-2", epoch: 8, instance: "b" });
    const of = { holder: { epoch: 7, instance: "a" } };
    await expect(run(artifacts, sandbox, persist("f", "stale"), { of })).rejects.toSatisfy((error) =>
      isFault(error, "lease-lost"),
    );
    expect(await artifacts.redis.exists(redisKeys.persisted(owner.key, "acme", "default", "main"))).toBe(0);
  });
});
