import type { JobSandbox } from "@berth/jobs";
import { maxInlineBytes } from "@berth/protocol";
import type { ReadOptions } from "@berth/sandbox";
import { describe, expect } from "vitest";
import { before } from "../support/gated-sandbox.ts";
import { test } from "../support/host.ts";
import { done, refused, run, text } from "../support/job-kinds.ts";

describe("write and read", () => {
  test("write and read carry text and bytes unchanged", async ({ host }) => {
    const sandbox = await host.sandbox();
    const written = await run(sandbox, {
      kind: "write",
      path: "a/é.txt",
      content: "öne\ntwo\n",
      mode: 0o600,
    });
    expect(written).toMatchObject({ outcome: done, value: { size: 9, created: true } });
    const read = await run(sandbox, { kind: "read", path: "a/é.txt" });
    expect(read).toMatchObject({
      outcome: done,
      value: {
        content: "öne\ntwo\n",
        encoding: "utf8",
        sha256: written.value.sha256,
        lines: { first: 1, last: 2, more: false },
      },
    });
    const bytes = Buffer.from([0, 255, 1, 254]).toString("base64");
    await run(sandbox, { kind: "write", path: "bin", content: bytes, encoding: "base64" });
    expect((await run(sandbox, { kind: "read", path: "bin", as: "bytes" })).value).toMatchObject({
      content: bytes,
      encoding: "base64",
      size: 4,
      truncated: false,
    });
  });

  test("write and read take the lines asked for, also from far inside a large file", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({ command: "seq 1000000 > numbers" });
    const near = await run(sandbox, { kind: "read", path: "numbers", line: 2, lines: 3 });
    expect(near.value).toMatchObject({ content: "2\n3\n4\n", lines: { first: 2, last: 4, more: true } });
    const far = await run(sandbox, { kind: "read", path: "numbers", line: 700_000, lines: 2 });
    expect(far.value).toMatchObject({
      content: "700000\n700001\n",
      lines: { first: 700_000, last: 700_001, more: true },
    });
    const end = await run(sandbox, { kind: "read", path: "numbers", line: 999_999, lines: 10 });
    expect(end.value).toMatchObject({
      content: "999999\n1000000\n",
      lines: { first: 999_999, last: 1_000_000, more: false },
    });
    const past = await run(sandbox, { kind: "read", path: "numbers", line: 2_000_000 });
    expect(past.value).toMatchObject({ content: "", lines: { more: false } });
    // As much as a result may carry, in whole lines.
    const most = await run(sandbox, { kind: "read", path: "numbers", lines: 1_000_000 });
    expect(most.value.content?.length).toBeGreaterThan(maxInlineBytes - 10);
    expect(most.value.content?.length).toBeLessThanOrEqual(maxInlineBytes);
    expect(most.value.content?.endsWith(`\n${most.value.lines?.last}\n`)).toBe(true);
    expect(most.value.lines?.more).toBe(true);
  });

  test("write and read of the first lines do not carry a huge file out of the sandbox", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({
      command: "head -c 300000 /dev/zero | tr '\\0' x > f; echo >> f; truncate -s 800M f",
    });
    let carriedBytes = 0;
    const counting: JobSandbox = {
      exec: (request, options) => sandbox.exec(request, options),
      files: Object.assign(Object.create(sandbox.files), {
        read: async (path: string, options: ReadOptions = {}) => {
          const { onData } = options;
          const read = await sandbox.files.read(path, {
            ...options,
            ...(onData && {
              onData: (bytes: Uint8Array) => {
                carriedBytes += bytes.length;
                return onData(bytes);
              },
            }),
          });
          carriedBytes += read.bytes.length;
          return read;
        },
      }),
    };
    const result = await run(counting, { kind: "read", path: "f", lines: 1 });
    expect(result.value).toMatchObject({ size: 800 * 1024 * 1024, lines: { first: 1, last: 1, more: true } });
    expect(result.value.content).toHaveLength(300_001);
    expect(carriedBytes).toBeLessThan(16 * 1024 * 1024);
  });

  test("write and read refuse what is not text, with advice", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("bin", Buffer.from([0x66, 0xff, 0x0a]));
    expect((await run(sandbox, { kind: "read", path: "bin" })).outcome).toEqual(
      refused("not-text", /bin is not UTF-8 text; read it as bytes/),
    );
    await sandbox.exec({ command: "head -c 2000000 /dev/zero | tr '\\0' x > line" });
    expect((await run(sandbox, { kind: "read", path: "line" })).outcome).toEqual(
      refused("too-large", /line 1 of line has more than 1048576 bytes/),
    );
  });

  test("write and read pass a file's own refusals on", async ({ host }) => {
    const sandbox = await host.sandbox();
    expect((await run(sandbox, { kind: "read", path: "none" })).outcome).toEqual(
      refused("not-found", /no such file or directory: none/),
    );
    await sandbox.files.write("f", "x");
    const again = { kind: "write", path: "f", content: "y", mustNotExist: true } as const;
    expect((await run(sandbox, again)).outcome).toEqual(refused("exists", /f/));
    const stale = { kind: "write", path: "f", content: "y", ifMatch: "0".repeat(64) } as const;
    expect((await run(sandbox, stale)).outcome).toEqual(refused("mismatch", /f has changed/));
  });
});

describe("edit", () => {
  test("edit replaces exactly one match and keeps the mode", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("run.sh", "#!/bin/sh\necho one\n", { mode: 0o755 });
    const result = await run(sandbox, { kind: "edit", path: "run.sh", find: "one", replace: "two" });
    expect(result).toMatchObject({ outcome: done, value: { count: 1, size: 19 } });
    expect(await text(sandbox, "run.sh")).toBe("#!/bin/sh\necho two\n");
    expect((await sandbox.files.stat("run.sh")).mode & 0o777).toBe(0o755);
  });

  test("edit that finds none or several matches changes nothing and gives advice", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("f", "a\nb\na\n");
    expect((await run(sandbox, { kind: "edit", path: "f", find: "z", replace: "y" })).outcome).toEqual(
      refused("no-match", /is not in f/),
    );
    const several = { kind: "edit", path: "f", find: "a", replace: "c" } as const;
    expect((await run(sandbox, several)).outcome).toEqual(
      refused("several-matches", /2 times in f \(at lines 1, 3\).* or say all/),
    );
    expect(await text(sandbox, "f")).toBe("a\nb\na\n");
    expect((await run(sandbox, { ...several, all: true })).value.count).toBe(2);
    expect(await text(sandbox, "f")).toBe("c\nb\nc\n");
  });

  test("edit does not overwrite what another job wrote in between", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("f", "one\n");
    const raced = before(sandbox, "write", (path) => sandbox.files.write(path, "theirs\n"));
    const result = await run(raced, { kind: "edit", path: "f", find: "one", replace: "mine" });
    expect(result.outcome).toEqual(refused("mismatch", /changed by something else meanwhile/));
    expect(await text(sandbox, "f")).toBe("theirs\n");
  });
});

describe("searching", () => {
  test("searching finds text, names and facts, and reports when there is more", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("src/a.ts", "const one = 1;\nconst two = 2;\n");
    await sandbox.files.write("src/b.md", "const three\n");
    const grep = await run(sandbox, { kind: "grep", pattern: "const", include: ["*.ts"], maxItems: 1 });
    expect(grep).toMatchObject({
      outcome: done,
      value: { matches: [{ path: "src/a.ts", line: 1, text: "const one = 1;" }], count: 1, truncated: true },
    });
    const glob = await run(sandbox, { kind: "glob", patterns: ["**/*.md"] });
    expect(glob.value).toMatchObject({ entries: [{ path: "src/b.md", type: "file" }], truncated: false });
    const list = await run(sandbox, { kind: "list", recursive: true });
    expect(list.value.entries?.map(({ path }) => path)).toEqual(["src", "src/a.ts", "src/b.md"]);
    const stat = await run(sandbox, { kind: "stat", path: "/workspace/src/a.ts", hash: true });
    expect(stat.value).toMatchObject({ entries: [{ path: "src/a.ts", type: "file" }], size: 30 });
    expect(stat.value.sha256).toMatch(/^[0-9a-f]{64}$/);
    const bad = await run(sandbox, { kind: "grep", pattern: "(", regex: true });
    expect(bad.outcome).toMatchObject({ kind: "refused", code: "bad-pattern" });
  });
});

describe("move and remove", () => {
  test("move and remove report how many entries they changed", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("a/b/c", "x");
    expect((await run(sandbox, { kind: "move", from: "a/b/c", to: "new/place" })).outcome).toEqual(done);
    expect(await text(sandbox, "new/place")).toBe("x");
    expect((await run(sandbox, { kind: "remove", path: "a" })).outcome).toMatchObject({ code: "not-empty" });
    expect(await run(sandbox, { kind: "remove", path: "a", recursive: true })).toMatchObject({
      outcome: done,
      value: { count: 2 },
    });
    expect((await run(sandbox, { kind: "remove", path: "a" })).outcome).toMatchObject({ code: "not-found" });
  });
});

describe("copy", () => {
  test("copy brings many files in one job", async ({ host }) => {
    const sandbox = await host.sandbox();
    const files = Array.from({ length: 200 }, (_, index) => ({
      path: `d${index % 7}/f${index}`,
      content: `${index}`,
    }));
    expect(await run(sandbox, { kind: "copy", files })).toMatchObject({
      outcome: done,
      value: { count: 200 },
    });
    expect(await text(sandbox, "d3/f199")).toBe("199");
  });

  test("copy writes what it can and names each file it cannot", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.makeDirectory("one");
    await sandbox.files.write("two", "a file");
    const files = ["one", "two/x", "three"].map((path) => ({ path, content: "x" }));
    const result = await run(sandbox, { kind: "copy", files });
    expect(result).toMatchObject({ outcome: { kind: "refused" }, value: { count: 1 } });
    expect(result.outcome).toMatchObject({
      message: expect.stringMatching(/^2 of 3 files .*\bone\b.*\btwo\b/),
    });
    expect(await text(sandbox, "three")).toBe("x");
  });

  test("copy does not take one path twice", async ({ host }) => {
    const sandbox = await host.sandbox();
    const files = ["a", "./a"].map((path) => ({ path, content: path }));
    expect((await run(sandbox, { kind: "copy", files })).outcome).toEqual(
      refused("invalid-request", /more than once: a/),
    );
  });
});
