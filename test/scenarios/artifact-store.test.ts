import { randomBytes } from "node:crypto";
import { readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Artifacts } from "@berth/client";
import { ArtifactStore, DirectoryStore } from "@berth/ledger";
import { artifactRef, isFault, redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { chunksOf, owner, test } from "../support/artifacts.ts";

const large = randomBytes(300_000);

async function read(stream: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of stream ?? []) parts.push(part);
  return Buffer.concat(parts);
}

describe("artifact", () => {
  test("an artifact is fetched by its id, small from Redis and large from the directory", async ({
    artifacts,
  }) => {
    const client = new Artifacts(artifacts.redis, { directory: artifacts.directory });
    for (const [path, content, place] of [
      ["notes.txt", Buffer.from("hello"), "redis"],
      ["empty", Buffer.alloc(0), "redis"],
      ["exactly", Buffer.alloc(64 * 1024, "x"), "redis"],
      ["one-more", Buffer.alloc(64 * 1024 + 1, "x"), /^[0-9a-f]{16}$/],
      ["sub/large.bin", large, /^[0-9a-f]{16}$/],
    ] as const) {
      const ref = await artifacts.kept(path, content);
      expect(artifactRef.parse(ref)).toEqual(ref);
      expect(await client.bytes(ref.id)).toEqual(content);
      const meta = await client.meta(ref.id);
      expect(meta).toMatchObject({ ...ref, tenant: "acme", sandboxKey: "acme", jobId: "job-1" });
      expect(meta?.place).toMatch(place);
    }
    expect(await artifacts.files()).toHaveLength(2);
  });

  test("an artifact is read in ranges", async ({ artifacts }) => {
    for (const content of [Buffer.from("0123456789"), large]) {
      const { id } = await artifacts.kept("f", content);
      const { reader } = artifacts.store;
      expect(await read(await reader.stream(id, { offset: 2, length: 5 }))).toEqual(content.subarray(2, 7));
      expect(await read(await reader.stream(id, { offset: 7 }))).toEqual(content.subarray(7));
      expect(await read(await reader.stream(id, { offset: content.length + 1 }))).toEqual(Buffer.alloc(0));
    }
  });

  test("an artifact that is unknown is undefined, and one whose directory is elsewhere is the fault artifact-elsewhere", async ({
    artifacts,
  }) => {
    const { id } = await artifacts.kept("large", large);
    const small = await artifacts.kept("small", "x");
    const { store } = artifacts;
    expect(await store.reader.bytes("x".repeat(32))).toBeUndefined();
    for (const directory of [undefined, join(tmpdir(), "berth-no-such-directory")]) {
      const client = new Artifacts(artifacts.redis, { directory });
      expect(await client.meta(id)).toMatchObject({ path: "large" });
      expect(await client.bytes(small.id)).toEqual(Buffer.from("x"));
      await expect(client.bytes(id)).rejects.toSatisfy((error) => isFault(error, "artifact-elsewhere"));
    }
  });

  test("an artifact whose bytes were removed is a fault, not an empty file", async ({ artifacts }) => {
    const inFile = await artifacts.kept("large", large);
    const inRedis = await artifacts.kept("small", "x");
    await rm(join(artifacts.directory, "sha256"), { recursive: true });
    await artifacts.redis.del(redisKeys.artifactBytes(inRedis.sha256));
    const { reader } = artifacts.store;
    const missing = (error: unknown) => isFault(error, "artifact-missing");
    for (const { id } of [inFile, inRedis]) {
      await expect(reader.bytes(id)).rejects.toSatisfy(missing);
      await expect(reader.stream(id).then(read)).rejects.toSatisfy(missing);
    }
    // The same content again makes both whole.
    await artifacts.kept("again", large);
    await artifacts.kept("again", "x");
    expect(await artifacts.store.reader.bytes(inFile.id)).toEqual(large);
    expect(await artifacts.store.reader.bytes(inRedis.id)).toEqual(Buffer.from("x"));
  });

  test("an artifact stored twice by the same job is the same artifact", async ({ artifacts }) => {
    const first = await artifacts.kept("f", large);
    const again = await artifacts.kept("f", large);
    expect(again.id).toBe(first.id);
    expect(again.expiresAtMs).toBeGreaterThanOrEqual(first.expiresAtMs);
    expect(await artifacts.store.usage("acme")).toEqual({ bytes: large.length, artifacts: 1 });
    expect(await artifacts.files()).toHaveLength(1);
  });

  test("an artifact of another job, path or content is another", async ({ artifacts }) => {
    const refs = [
      await artifacts.kept("f", "x"),
      await artifacts.kept("g", "x"),
      await artifacts.kept("f", "y"),
      await artifacts.kept("f", "x", { jobId: "job-2" }),
    ];
    expect(new Set(refs.map(({ id }) => id)).size).toBe(4);
  });
});

describe("same content", () => {
  test("the same content is stored once, and goes with the last artifact that has it", async ({
    artifacts,
  }) => {
    const refs = [
      await artifacts.kept("a", large),
      await artifacts.kept("b", large, { jobId: "job-2" }),
      await artifacts.kept("c", large, { tenant: "other", jobId: "job-3" }),
    ];
    expect(await artifacts.files()).toHaveLength(1);
    expect(await artifacts.store.usage("acme")).toEqual({ bytes: 2 * large.length, artifacts: 2 });
    for (const { id } of refs) {
      expect(await artifacts.store.reader.bytes(id)).toEqual(large);
      expect(await artifacts.store.remove(id)).toBe(true);
      expect(await artifacts.store.remove(id)).toBe(false);
    }
    expect(await artifacts.files()).toEqual([]);
    expect(await artifacts.keys()).toEqual([]);
  });

  test("the same content put by many at once is stored once", async ({ artifacts }) => {
    const refs = await Promise.all(
      Array.from({ length: 20 }, (_, index) => artifacts.kept(`f${index}`, large)),
    );
    expect(await artifacts.files()).toHaveLength(1);
    expect(await artifacts.store.usage("acme")).toEqual({ bytes: 20 * large.length, artifacts: 20 });
    const dropping = refs.slice(1).map(({ id }) => artifacts.store.remove(id));
    const adding = refs.slice(1).map((_, index) => artifacts.kept(`g${index}`, large));
    await Promise.all([...dropping, ...adding]);
    for (const { id } of await Promise.all(adding))
      expect(await artifacts.store.reader.bytes(id)).toEqual(large);
    expect(await artifacts.files()).toHaveLength(1);
  });
});

describe("what is over a limit", () => {
  test("an artifact over the size limit is refused before the rest of it is read", async ({ artifacts }) => {
    const { store } = artifacts.with({ maxBytes: 100_000 });
    let given = 0;
    async function* endless() {
      for (; ; given++) yield Buffer.alloc(10_000);
    }
    expect(await store.put(owner, "f", endless())).toEqual({
      refused: { path: "f", code: "too-large", reason: expect.stringContaining("97.7 KB") },
    });
    expect(given).toBeLessThan(12);
    expect(await artifacts.files()).toEqual([]);
    expect(await artifacts.keys()).toEqual([]);
  });

  test("an artifact over the tenant's quota is refused, and another tenant's are not", async ({
    artifacts,
  }) => {
    const some = artifacts.with({ quotaBytes: 500_000 });
    const first = await some.kept("a", large);
    const over = await some.store.put(owner, "b", chunksOf(randomBytes(300_000)));
    expect(over).toMatchObject({ refused: { path: "b", code: "quota" } });
    const expected = await some.store.put(owner, "b", neverRead(), { expectedBytes: 300_000 });
    expect(expected).toMatchObject({ refused: { code: "quota" } });
    await some.kept("b", randomBytes(300_000), { tenant: "other" });
    expect(await artifacts.files()).toHaveLength(2);
    await some.store.remove(first.id);
    await some.kept("b", randomBytes(300_000));
  });

  test("an artifact beyond the tenant's number of artifacts is refused", async ({ artifacts }) => {
    const some = artifacts.with({ quotaCount: 2 });
    await some.kept("a", "");
    await some.kept("b", "");
    expect(await some.store.put(owner, "c", chunksOf(""))).toMatchObject({
      refused: { code: "quota", reason: expect.stringContaining("2 of 2 artifacts") },
    });
  });

  test("many artifacts stored at once never pass the tenant's quota", async ({ artifacts }) => {
    const { store } = artifacts.with({ quotaBytes: 10_000 });
    const puts = Array.from({ length: 40 }, (_, index) =>
      store.put(owner, `f${index}`, chunksOf(Buffer.alloc(1_000, index))),
    );
    const answers = await Promise.all(puts);
    expect(answers.filter((answer) => "kept" in answer)).toHaveLength(10);
    expect(await store.usage("acme")).toEqual({ bytes: 10_000, artifacts: 10 });
  });
});

describe("between two steps", () => {
  test("a file that was swept before its artifact was added does not become an artifact", async ({
    artifacts,
  }) => {
    class Slow extends DirectoryStore {
      override async commit(draft: string, final: string): Promise<void> {
        await super.commit(draft, final);
        await artifacts.redis.zadd(redisKeys.artifactGarbage((await this.id()) ?? ""), 1, final);
        await artifacts.store.sweep();
      }
    }
    const slow = new ArtifactStore(artifacts.redis, new Slow(artifacts.directory));
    expect(await slow.put(owner, "f", chunksOf(large))).toMatchObject({ refused: { code: "not-kept" } });
    expect(await artifacts.files()).toEqual([]);
    expect(await artifacts.keys()).toEqual([]);
  });

  test("an artifact keeps its bytes when the answer of the script that adds it gets lost", async ({
    artifacts,
  }) => {
    let lost = false;
    const redis = new Proxy(artifacts.redis, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        if (name !== "eval" && name !== "evalsha") return value.bind(target);
        return async (...args: unknown[]) => {
          await value.apply(target, args);
          lost = true;
          throw new Error("Connection is closed.");
        };
      },
    });
    const { directory } = artifacts;
    const cut = new ArtifactStore(redis, new DirectoryStore(directory));
    await expect(cut.put(owner, "f", chunksOf(large))).rejects.toSatisfy((error) =>
      isFault(error, "redis-unreachable"),
    );
    expect(lost).toBe(true);
    expect(await artifacts.store.usage("acme")).toEqual({ bytes: large.length, artifacts: 1 });
    const { id } = await artifacts.kept("f", large);
    expect(await artifacts.store.reader.bytes(id)).toEqual(large);
    expect(await artifacts.files()).toHaveLength(1);
  });

  test("an artifact whose source fails leaves no file", async ({ artifacts }) => {
    async function* failing() {
      yield large;
      throw new Error("the sandbox is gone");
    }
    await expect(artifacts.store.put(owner, "f", failing())).rejects.toThrow("the sandbox is gone");
    expect(await artifacts.files()).toEqual([]);
    expect(await artifacts.keys()).toEqual([]);
  });

  test("an artifact directory that was emptied is used again, with another id", async ({ artifacts }) => {
    const before = await artifacts.kept("f", large);
    for (const name of await readdir(artifacts.directory))
      await rm(join(artifacts.directory, name), { recursive: true });
    const after = await artifacts.kept("g", large);
    expect(await artifacts.store.reader.bytes(after.id)).toEqual(large);
    await expect(artifacts.store.reader.bytes(before.id)).rejects.toSatisfy((error) =>
      isFault(error, "artifact-elsewhere"),
    );
    expect(await artifacts.store.remove(before.id)).toBe(true);
  });

  test("an artifact directory that cannot be written is a fault, and small artifacts are kept all the same", async ({
    artifacts,
  }) => {
    const file = join(artifacts.directory, "a-file");
    await writeFile(file, "");
    const store = new ArtifactStore(artifacts.redis, new DirectoryStore(file));
    await expect(store.put(owner, "f", chunksOf(large))).rejects.toSatisfy((error) =>
      isFault(error, "artifact-store-failed"),
    );
    expect(await store.put(owner, "f", chunksOf("small"))).toHaveProperty("kept");
  });
});

describe("worker that lost its lease", () => {
  test("a worker that lost its lease adds and removes nothing", async ({ artifacts }) => {
    const lease = redisKeys.lease(owner.key);
    const holder = { epoch: 7, instance: "a" };
    await artifacts.redis.hset(lease, { worker: "worker-1", ...holder });
    const ref = await artifacts.kept("f", "x", { holder });
    const lost = (error: unknown) => isFault(error, "lease-lost");
    // A Redis that lost its last second may give an epoch twice. The two holders then differ by their instance.
    for (const next of [
      { worker: "worker-2", epoch: 8, instance: "a" },
      { worker: "worker-2", epoch: 7, instance: "b" },
    ]) {
      await artifacts.redis.hset(lease, next);
      await expect(artifacts.kept("g", "x", { holder })).rejects.toSatisfy(lost);
      await expect(artifacts.kept("g", large, { holder })).rejects.toSatisfy(lost);
      await expect(artifacts.store.remove(ref.id, { holder })).rejects.toSatisfy(lost);
    }
    expect(await artifacts.store.usage("acme")).toEqual({ bytes: 1, artifacts: 1 });
    expect(await artifacts.files()).toEqual([]);
  });
});

describe("sweep", () => {
  test("the sweep drops what has expired, gives its quota back, and leaves the rest", async ({
    artifacts,
  }) => {
    const brief = artifacts.with({ keptMs: 30 });
    const gone = [await brief.kept("a", "small"), await brief.kept("b", large)];
    const kept = await artifacts.kept("c", large);
    await expect.poll(async () => (await brief.store.reader.meta(gone[1]?.id ?? "")) ?? "gone").toBe("gone");
    expect(await brief.store.sweep()).toEqual({ expired: 2, removedFiles: 0 });
    expect(await artifacts.store.reader.bytes(kept.id)).toEqual(large);
    expect(await artifacts.store.usage("acme")).toEqual({ bytes: large.length, artifacts: 1 });
    await artifacts.store.remove(kept.id);
    expect(await artifacts.keys()).toEqual([]);
    expect(await artifacts.files()).toEqual([]);
  });

  test("the sweep of several processes at once counts each artifact once", async ({ artifacts }) => {
    const brief = artifacts.with({ keptMs: 1 });
    const refs = [];
    for (let index = 0; index < 30; index++) refs.push(await brief.kept(`f${index}`, randomBytes(70_000)));
    const last = refs.at(-1)?.id ?? "";
    await expect.poll(async () => (await brief.store.reader.meta(last)) ?? "gone").toBe("gone");
    const reports = await Promise.all([1, 2, 3].map(() => brief.store.sweep()));
    expect(reports.reduce((sum, { expired }) => sum + expired, 0)).toBe(30);
    expect(await artifacts.files()).toEqual([]);
    expect(await artifacts.keys()).toEqual([]);
  });

  test("the sweep does not touch an artifact that was stored again while it looked", async ({
    artifacts,
  }) => {
    const first = await artifacts.with({ keptMs: 1 }).kept("f", large);
    await expect.poll(async () => (await artifacts.store.reader.meta(first.id)) ?? "gone").toBe("gone");
    const redis = new Proxy(artifacts.redis, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        if (name !== "zrangebyscore") return value.bind(target);
        return async (...args: unknown[]) => {
          const due: unknown = await value.apply(target, args);
          await artifacts.kept("f", large);
          return due;
        };
      },
    });
    const sweeping = new ArtifactStore(redis, new DirectoryStore(artifacts.directory));
    expect(await sweeping.sweep()).toEqual({ expired: 0, removedFiles: 0 });
    expect(await artifacts.store.reader.bytes(first.id)).toEqual(large);
  });

  test("the sweep removes only files that its index names, and leaves all others in the directory", async ({
    artifacts,
  }) => {
    await artifacts.kept("f", large);
    await writeFile(join(artifacts.directory, "another-programs"), "x");
    expect(await artifacts.store.sweep()).toEqual({ expired: 0, removedFiles: 0 });
    expect(await readdir(artifacts.directory)).toContain("another-programs");
  });

  test("the sweep does not follow a name out of the directory", async ({ artifacts }) => {
    await artifacts.kept("f", large);
    const outside = join(artifacts.directory, "..", `${artifacts.directory.split("/").at(-1)}-outside`);
    await writeFile(outside, "x");
    const place = (await artifacts.keys())
      .find((key) => key.startsWith("berth:artifact-blob"))
      ?.split(":")[2];
    await artifacts.redis.zadd(
      redisKeys.artifactGarbage(place ?? ""),
      1,
      `../${outside.split("/").at(-1) ?? ""}`,
    );
    await expect(artifacts.store.sweep()).rejects.toSatisfy((error) =>
      isFault(error, "artifact-store-failed"),
    );
    expect((await stat(outside)).size).toBe(1);
    await rm(outside);
  });
});

// biome-ignore lint/correctness/useYield: it must not be asked for anything
async function* neverRead(): AsyncGenerator<Uint8Array, void, void> {
  throw new Error("it was read");
}
