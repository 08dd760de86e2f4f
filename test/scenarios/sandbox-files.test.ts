import { createHash } from "node:crypto";
import { FileRefusal, type FileRefusalCode } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../support/host.ts";
import { shown } from "../support/shown.ts";

const text = (content: { bytes: Uint8Array }) => Buffer.from(content.bytes).toString();
const sha256 = (content: string) => createHash("sha256").update(content).digest("hex");

async function refusal(operation: Promise<unknown>): Promise<FileRefusalCode> {
  const error = await operation.then(
    () => new Error("it was not refused"),
    (thrown: unknown) => thrown,
  );
  if (error instanceof FileRefusal) return error.code;
  throw error;
}

describe("files of a sandbox", () => {
  test("files written in a sandbox are read back, by range too", async ({ host }) => {
    const { files } = await host.sandbox();
    expect(await files.write("a/b/c.txt", "0123456789")).toEqual({
      size: 10,
      created: true,
      sha256: sha256("0123456789"),
    });
    expect(await files.read("a/b/c.txt")).toMatchObject({
      size: 10,
      mode: 0o644,
      sha256: sha256("0123456789"),
    });
    expect(text(await files.read("/workspace/a/b/c.txt"))).toBe("0123456789");
    expect(text(await files.read("a/b/c.txt", { offset: 3, length: 4 }))).toBe("3456");
    expect(text(await files.read("a/b/c.txt", { offset: 8, length: 100 }))).toBe("89");
    expect(text(await files.read("a/b/c.txt", { offset: 100 }))).toBe("");
  });

  test("files of a sandbox that are larger than one read may be are refused as too-large, and readable by range", async ({
    host,
  }) => {
    const { files } = await host.sandbox();
    await files.write("large", "0123456789");
    expect(await refusal(files.read("large", { maxBytes: 9 }))).toBe("too-large");
    expect(text(await files.read("large", { maxBytes: 9, length: 4 }))).toBe("0123");
    expect(text(await files.read("large", { maxBytes: 10 }))).toBe("0123456789");
  });

  test("files that the worker writes are seen by commands, and the other way round", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("main.py", "print(6 * 7)");
    expect(shown(await sandbox.exec({ command: "python3 main.py" })).stdout).toBe("42\n");
    await sandbox.exec({ command: "echo made > made.txt" });
    expect(text(await sandbox.files.read("made.txt"))).toBe("made\n");
  });

  test("files of a sandbox are written and read many at a time, and each that cannot be is reported", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile: { limits: { workspaceBytes: 4_000_000 } } });
    const { files } = sandbox;
    await sandbox.exec({ command: "mkdir dir; ln -s /etc out; echo old > kept; chmod 750 kept" });
    const bytes = Buffer.from("new");
    const many = Array.from({ length: 500 }, (_, n) => ({ path: `many/${n % 9}/${n}`, bytes, mode: 0o600 }));
    const written = await files.writeMany([
      ...many,
      { path: "kept", bytes },
      { path: "dir", bytes },
      { path: "out/new", bytes },
      { path: "../up", bytes },
      { path: "large", bytes: Buffer.alloc(5_000_000) },
    ]);
    expect(written).toMatchObject({ count: 501, bytes: 1_503 });
    expect(written.refused.map(({ path, refusal: { code } }) => `${path} ${code}`).sort()).toEqual([
      "../up invalid-path",
      "dir is-a-directory",
      "large quota",
      "out/new outside-workspace",
    ]);
    const read = await files.readMany(["many", "kept", "missing"], { recursive: true });
    expect(read.entries).toHaveLength(511);
    expect(read.entries.filter(({ type }) => type === "file").map((one) => text(one as never))).toEqual(
      Array.from({ length: 501 }, () => "new"),
    );
    expect(read.entries.find(({ path }) => path === "kept")?.mode).toBe(0o750);
    expect(read.entries.find(({ path }) => path === "many/1/1")?.mode).toBe(0o600);
    expect(read.refused.map(({ path, refusal }) => [path, refusal.code])).toEqual([["missing", "not-found"]]);
    expect((await files.readMany(["many"], { recursive: true, maxItems: 5 })).truncated).toBe(true);
    const aborted = new AbortController();
    aborted.abort();
    await expect(files.readMany(["many"], { signal: aborted.signal })).rejects.toMatchObject({
      code: "aborted",
    });
  });

  test("files of a sandbox of thirty megabytes go in and out unchanged, as a stream too", async ({
    host,
  }) => {
    const { files } = await host.sandbox();
    const content = Buffer.alloc(30_000_000, "0123456789abcdef\n");
    const digest = createHash("sha256").update(content).digest("hex");
    expect((await files.write("large.bin", content)).sha256).toBe(digest);
    expect(Buffer.compare((await files.read("large.bin")).bytes, content)).toBe(0);
    const streamed = createHash("sha256");
    const read = await files.read("large.bin", { onData: (bytes) => void streamed.update(bytes) });
    expect([streamed.digest("hex"), read.bytes.length]).toEqual([digest, 0]);
    async function* parts() {
      for (let offset = 0; offset < content.length; offset += 1_000_000)
        yield content.subarray(offset, offset + 1_000_000);
    }
    expect((await files.write("copy.bin", { size: content.length, chunks: parts() })).sha256).toBe(digest);
  });

  test("files of a sandbox are replaced whole or not at all", async ({ host }) => {
    const sandbox = await host.sandbox();
    const { files } = sandbox;
    await files.write("f", "before");
    async function* breaks() {
      yield Buffer.from("half");
      throw new Error("the source broke");
    }
    await expect(files.write("f", { size: 8, chunks: breaks() })).rejects.toThrow("the source broke");
    expect(text(await files.read("f"))).toBe("before");
    expect(shown(await sandbox.exec({ command: "ls -A" })).stdout).toBe("f\n");
  });

  test("files of a sandbox keep their mode unless the write names another", async ({ host }) => {
    const sandbox = await host.sandbox();
    const { files } = sandbox;
    await files.write("run.sh", "#!/bin/sh\necho one\n", { mode: 0o755 });
    await files.write("run.sh", "#!/bin/sh\necho two\n");
    expect((await files.stat("run.sh")).mode & 0o777).toBe(0o755);
    expect(shown(await sandbox.exec({ argv: ["./run.sh"] })).stdout).toBe("two\n");
  });

  test("files of a sandbox are appended to, guarded by hash, and made only once, when asked", async ({
    host,
  }) => {
    const { files } = await host.sandbox();
    await files.write("log", "one\n");
    await files.write("log", "two\n", { append: true });
    expect(text(await files.read("log"))).toBe("one\ntwo\n");
    await files.write("log", "three\n", { ifMatch: sha256("one\ntwo\n") });
    expect(await refusal(files.write("log", "four\n", { ifMatch: sha256("stale") }))).toBe("mismatch");
    expect(await refusal(files.write("log", "five\n", { mustNotExist: true }))).toBe("exists");
    expect(text(await files.read("log"))).toBe("three\n");
    expect(await refusal(files.write("no/such/dir", "x", { parents: false }))).toBe("not-found");
  });

  test("files of a sandbox can be listed, looked up, moved and removed", async ({ host }) => {
    const { files } = await host.sandbox();
    for (const path of ["a/one.txt", "a/b/two.txt", "three.txt"]) await files.write(path, path);
    await files.makeDirectory("empty");
    expect((await files.list("")).items.map(({ path, type }) => [path, type])).toEqual([
      ["a", "directory"],
      ["empty", "directory"],
      ["three.txt", "file"],
    ]);
    const all = await files.list("", { recursive: true });
    expect(all.items.map(({ path }) => path)).toEqual([
      "a",
      "a/b",
      "a/b/two.txt",
      "a/one.txt",
      "empty",
      "three.txt",
    ]);
    expect(await files.list("", { recursive: true, maxItems: 3 })).toMatchObject({ truncated: true });
    expect((await files.list("", { recursive: true, maxDepth: 1 })).items).toHaveLength(3);
    expect(await files.stat("a/one.txt", { hash: true })).toMatchObject({
      type: "file",
      size: 9,
      sha256: sha256("a/one.txt"),
    });
    await files.move("a/one.txt", "moved/uno.txt", { parents: true });
    expect(text(await files.read("moved/uno.txt"))).toBe("a/one.txt");
    expect(await refusal(files.read("a/one.txt"))).toBe("not-found");
    expect(await refusal(files.move("three.txt", "moved/uno.txt"))).toBe("exists");
    await files.move("three.txt", "moved/uno.txt", { overwrite: true });
    expect(await refusal(files.remove("a"))).toBe("not-empty");
    await files.remove("a", { recursive: true });
    expect(await refusal(files.remove("a"))).toBe("not-found");
    expect(await files.remove("a", { missingOk: true })).toBe(0);
    expect(await refusal(files.remove("", { recursive: true }))).toBe("invalid-path");
  });

  test("files of a sandbox are found by name and by content", async ({ host }) => {
    const sandbox = await host.sandbox();
    const { files } = sandbox;
    await files.write("src/main.ts", "import x\nconst needle = 1;\n");
    await files.write("src/deep/er/util.ts", "nothing\nNeedle two\n");
    await files.write("README.md", "a needle here\n");
    await files.write(".hidden/secret.ts", "needle\n");
    await sandbox.exec({ command: "printf 'needle\\0' > binary.ts" });
    const globbed = async (pattern: string | string[]) =>
      (await files.glob(pattern)).items.map(({ path }) => path);
    expect(await globbed("src/*.ts")).toEqual(["src/main.ts"]);
    expect(await globbed("**/*.ts")).toEqual(["binary.ts", "src/deep/er/util.ts", "src/main.ts"]);
    expect(await globbed(["*.md", "src/**"])).toContain("README.md");
    const found = await files.grep("needle");
    expect(found.items.map(({ path, line }) => `${path}:${line}`)).toEqual(
      expect.arrayContaining(["README.md:1", "src/main.ts:2"]),
    );
    expect(found.filesSkipped).toBe(1);
    const insensitive = await files.grep("^NEEDLE [a-z]+$", {
      regex: true,
      ignoreCase: true,
      include: ["*.ts"],
    });
    expect(insensitive.items).toEqual([
      { path: "src/deep/er/util.ts", line: 2, text: "Needle two", cut: false },
    ]);
    expect(await refusal(files.grep("(", { regex: true }))).toBe("bad-pattern");
  });

  test("files of a sandbox behind links work inside the workspace and are refused outside of it", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const { files } = sandbox;
    await files.write("real/file", "inside");
    await sandbox.exec({
      command: "ln -s real link; ln -s /workspace/real/file absolute; ln -s /etc/passwd out; ln -s loop loop",
    });
    expect(text(await files.read("link/file"))).toBe("inside");
    expect(text(await files.read("absolute"))).toBe("inside");
    await files.write("absolute", "through");
    expect(text(await files.read("real/file"))).toBe("through");
    expect(await refusal(files.read("out"))).toBe("outside-workspace");
    expect(await refusal(files.write("out", "x"))).toBe("outside-workspace");
    expect(await refusal(files.read("loop"))).toBe("too-many-links");
    expect(await files.stat("out", { followLinks: false })).toMatchObject({
      type: "symlink",
      target: "/etc/passwd",
    });
  });

  test("files of a sandbox are refused with a sentence that has the reason", async ({ host }) => {
    const { files } = await host.sandbox();
    await files.write("f", "x");
    await expect(files.read("missing")).rejects.toThrow("no such file or directory: missing");
    await expect(files.read("../x")).rejects.toThrow('invalid path: it has a ".." segment');
    await expect(files.list("f")).rejects.toThrow("not a directory: f");
    await expect(files.read("")).rejects.toBeInstanceOf(FileRefusal);
    await expect(files.read("f", { maxBytes: 0 })).rejects.toThrow("has 1 bytes, more than the 0");
  });

  test("files of a sandbox keep their bytes for a reader that waits while other files are read", async ({
    host,
  }) => {
    const { files } = await host.sandbox();
    await files.write("plan", "the plan\n");
    await files.write("other", "x".repeat(100));
    let seen = "";
    await files.read("plan", {
      onData: async (bytes) => {
        await files.read("other");
        seen += Buffer.from(bytes);
      },
    });
    expect(seen).toBe("the plan\n");
  });

  test("files of a sandbox are read as far as asked while a reader waits, and not at all once aborted", async ({
    host,
  }) => {
    const { files } = await host.sandbox();
    await files.write("large", Buffer.alloc(10_000_000));
    const controller = new AbortController();
    const onData = async () => {
      controller.abort();
    };
    await expect(files.read("large", { onData, signal: controller.signal })).rejects.toMatchObject({
      code: "aborted",
    });
    await expect(files.stat("large", { signal: controller.signal })).rejects.toMatchObject({
      code: "aborted",
    });
    expect((await files.stat("large")).size).toBe(10_000_000);
  });
});

describe("workspace's quota", () => {
  const profile = { limits: { workspaceBytes: 20 * 1024 * 1024, workspaceEntries: 500 } };
  const megabytes = (count: number) => Buffer.alloc(count * 1024 * 1024, 1);

  test("the workspace's quota refuses a write whose result would pass it, and reads still work", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    const { files } = sandbox;
    await files.write("twelve", megabytes(12));
    await expect(files.write("nine", megabytes(9))).rejects.toThrow(
      /^workspace quota exceeded \(20 MB\); used 12 MB, attempted 9437184 bytes more$/,
    );
    expect(await refusal(files.stat("nine"))).toBe("not-found");
    await files.write("twelve", megabytes(13));
    expect((await files.read("twelve")).size).toBe(13 * 1024 * 1024);
    expect((await sandbox.usage()).bytes).toBeLessThan(14 * 1024 * 1024);
  });

  test("the workspace's quota stops a command that passes it, and the workspace can be cleaned afterwards", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    const fill = "for i in $(seq 1 400); do head -c 1048576 /dev/zero > f$i; sleep 0.01; done";
    const { outcome } = await sandbox.exec({ command: fill });
    expect(outcome).toMatchObject({ kind: "quota-exceeded", limit: 20 * 1024 * 1024, unit: "bytes" });
    expect(await refusal(sandbox.files.write("more", "x".repeat(100)))).toBe("quota");
    expect((await sandbox.files.read("f1")).size).toBe(1024 * 1024);
    expect((await sandbox.exec({ command: "rm -f f*; sleep 1; echo cleaned" })).outcome).toEqual({
      kind: "exited",
      code: 0,
    });
    await sandbox.files.write("more", "x".repeat(100));
  });

  test("the workspace's quota lets a full workspace be read and cleaned by commands, and not filled further", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    await sandbox.exec({ command: "head -c 60000000 /dev/zero > big; sleep 5" });
    const { bytes } = await sandbox.usage();
    const { outcome } = await sandbox.exec({
      argv: ["dd", "if=/dev/zero", "of=more", "bs=1M", "count=5", "status=none"],
    });
    expect(outcome).toMatchObject({ kind: "quota-exceeded" });
    expect((await sandbox.usage()).bytes).toBeLessThanOrEqual(bytes + 8192);
    expect((await sandbox.exec({ command: "wc -c < big && rm big more" })).outcome).toEqual({
      kind: "exited",
      code: 0,
    });
    expect((await sandbox.exec({ command: "echo room > again" })).outcome).toEqual({
      kind: "exited",
      code: 0,
    });
  });

  test("the workspace's quota is not passed by many commands that are each too short to be looked at", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    for (let count = 0; count < 100; count++) {
      await sandbox.exec({ command: `head -c 5000000 /dev/zero > s${count}` });
    }
    // 500 MB were tried; what the disk took before the first look is what it may be over.
    expect((await sandbox.usage()).bytes).toBeLessThan(200 * 1024 * 1024);
  });

  test("the workspace's quota is not passed by many writes at once", async ({ host }) => {
    const { files } = await host.sandbox({ profile });
    const all = await Promise.allSettled(
      Array.from({ length: 12 }, (_, index) => files.write(`w${index}`, megabytes(4))),
    );
    // The directory itself takes a block: the fifth would pass the limit.
    expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
  });

  test("the workspace's quota is not passed by what a command leaves in the background", async ({ host }) => {
    const sandbox = await host.sandbox({ profile });
    const writer = "i=0; while :; do head -c 1048576 /dev/zero > b$((i=i+1)); sleep 0.02; done";
    expect((await sandbox.exec({ command: `(${writer}) > /dev/null 2>&1 &` })).outcome.kind).toBe("exited");
    await expect
      .poll(
        async () => {
          await sandbox.usage();
          return sandbox.origin.restarts;
        },
        { timeout: 30_000 },
      )
      .toBe(1);
    const { bytes } = await sandbox.usage();
    expect(bytes).toBeLessThan(120 * 1024 * 1024);
    expect((await sandbox.usage()).bytes).toBe(bytes);
  });

  test("the workspace's quota counts files as well as bytes", async ({ host }) => {
    const sandbox = await host.sandbox({ profile });
    const { outcome } = await sandbox.exec({
      command: "i=0; while :; do : > e$((i=i+1)); sleep 0.001; done",
    });
    expect(outcome).toMatchObject({ kind: "quota-exceeded", limit: 500, unit: "entries" });
    expect(await refusal(sandbox.files.write("one-more", ""))).toBe("quota");
  });
});
