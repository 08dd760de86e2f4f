import { spawnSync } from "node:child_process";
import { gzipSync } from "node:zlib";
import {
  execLimits,
  isFault,
  type JobRequestInput,
  type JobResult,
  jobRequest,
  maxInlineBytes,
} from "@berth/protocol";
import type { ReadOptions, Sandbox } from "@berth/sandbox";
import { type RunContext, type RunnerSandbox, runRequest } from "@berth/tenancy";
import { describe, expect } from "vitest";
import { type TarItem, tarOf } from "../../packages/tenancy/src/kinds/tar-write.ts";
import { test } from "../support/host.ts";

function run(
  sandbox: RunnerSandbox,
  request: JobRequestInput,
  context: Partial<RunContext> = {},
): Promise<JobResult> {
  return runRequest(jobRequest.parse(request), {
    sandbox,
    signal: new AbortController().signal,
    limits: execLimits.parse({}),
    ...context,
  });
}

const done = { kind: "done" };
const refused = (code: string, message: RegExp) => ({
  kind: "refused",
  code,
  message: expect.stringMatching(message),
});

async function text(sandbox: Sandbox, path: string): Promise<string> {
  return Buffer.from((await sandbox.files.read(path)).bytes).toString();
}

async function names(sandbox: Sandbox): Promise<string[]> {
  return (await sandbox.files.list("", { recursive: true })).items.map(({ path }) => path);
}

/** The sandbox with something happening right before one of its file operations. */
function before(
  sandbox: Sandbox,
  method: "write" | "remove",
  act: (path: string) => Promise<unknown>,
): RunnerSandbox {
  const { files } = sandbox;
  const gated = new Proxy(files, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name !== method) return value.bind(target);
      return async (path: string, ...rest: unknown[]) => {
        await act(path);
        return value.call(target, path, ...rest);
      };
    },
  });
  return { files: gated, exec: (request, options) => sandbox.exec(request, options) };
}

describe("exec", () => {
  test("gives the command's outcome, both outputs, and output as it comes", async ({ host }) => {
    const sandbox = await host.sandbox();
    const seen: string[] = [];
    const result = await run(
      sandbox,
      { kind: "exec", command: "cat; echo oops >&2; exit 3", stdin: "in\n", artifacts: ["*.txt"] },
      { onOutput: (stream, bytes) => void seen.push(`${stream}: ${Buffer.from(bytes)}`) },
    );
    expect(result).toMatchObject({
      outcome: { kind: "exited", code: 3 },
      value: { stdout: "in\n", stderr: "oops\n", cutBytes: 0 },
    });
    expect(seen.sort()).toEqual(["stderr: oops\n", "stdout: in\n"]);
  });

  test("is bound by the job's limits, and a request only tightens them", async ({ host }) => {
    const sandbox = await host.sandbox();
    const limits = execLimits.parse({ timeoutMs: 300, keptBytes: 1_000 });
    const slow = { kind: "exec", command: "sleep 20", limits: { timeoutMs: 20_000 } } as const;
    expect((await run(sandbox, slow, { limits })).outcome).toEqual({ kind: "timed-out", afterMs: 300 });
    const loud = await run(sandbox, { kind: "exec", command: "yes | head -c 5000" }, { limits });
    expect(loud.value).toMatchObject({ cutBytes: 4_000 });
  });

  test("that is aborted is cancelled, with the reason", async ({ host }) => {
    const sandbox = await host.sandbox();
    const controller = new AbortController();
    const running = run(
      sandbox,
      { kind: "exec", command: "echo up; sleep 60" },
      { signal: controller.signal, onOutput: () => controller.abort("nobody wants it any more") },
    );
    expect((await running).outcome).toEqual({ kind: "cancelled", reason: "nobody wants it any more" });
  });
});

describe("code", () => {
  test("runs in each language with arguments and standard input, and leaves no file", async ({ host }) => {
    const sandbox = await host.sandbox();
    const sources = {
      python: "import sys\nprint(sys.argv[1], sys.stdin.read())",
      bash: '[[ $1 == it* ]] && echo "$1 $(cat)"',
      sh: 'echo "$1 $(cat)"',
    } as const;
    for (const language of ["python", "bash", "sh"] as const) {
      const source = sources[language];
      const result = await run(sandbox, { kind: "code", language, source, args: ["it's $1"], stdin: "in" });
      expect(result, language).toMatchObject({
        outcome: { kind: "exited", code: 0 },
        value: { stdout: "it's $1 in\n", stderr: "" },
      });
    }
    expect(await names(sandbox)).toEqual([]);
  });

  test("imports the modules that stand in its working directory", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("app/helper.py", "answer = 42");
    const result = await run(sandbox, {
      kind: "code",
      language: "python",
      source: "import helper; print(helper.answer)",
      cwd: "app",
    });
    expect(result.value.stdout).toBe("42\n");
  });

  test("in a directory that is not there is refused, and does not make it", async ({ host }) => {
    const sandbox = await host.sandbox();
    const result = await run(sandbox, { kind: "code", language: "sh", source: "", cwd: "nowhere" });
    expect(result.outcome).toEqual(refused("not-found", /no such directory to run in: nowhere/));
    expect(await names(sandbox)).toEqual([]);
  });

  test("whose interpreter is not in the image is refused by name", async ({ host }) => {
    const sandbox = await host.sandbox();
    const without: RunnerSandbox = {
      files: sandbox.files,
      // As in an image that has no such program: the command's own PATH does not decide where init looks.
      exec: (request, options) =>
        sandbox.exec(
          "argv" in request ? { ...request, argv: ["no-such-python", ...request.argv.slice(1)] } : request,
          options,
        ),
    };
    const result = await run(without, { kind: "code", language: "python", source: "" });
    expect(result.outcome).toEqual(
      refused("command-not-found", /python code needs python3, which is not in this sandbox's image/),
    );
    expect(await names(sandbox)).toEqual([]);
  });

  test("that is aborted leaves no file either", async ({ host }) => {
    const sandbox = await host.sandbox();
    const controller = new AbortController();
    const result = await run(
      sandbox,
      { kind: "code", language: "sh", source: "echo up; sleep 60" },
      { signal: controller.signal, onOutput: () => controller.abort() },
    );
    expect(result.outcome).toMatchObject({ kind: "cancelled" });
    expect(await names(sandbox)).toEqual([]);
  });
});

describe("write and read", () => {
  test("carry text and bytes unchanged", async ({ host }) => {
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

  test("take the lines asked for, also from far inside a large file", async ({ host }) => {
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

  test("of the first lines do not carry a huge file out of the sandbox", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({
      command: "head -c 300000 /dev/zero | tr '\\0' x > f; echo >> f; truncate -s 800M f",
    });
    let carriedBytes = 0;
    const counting: RunnerSandbox = {
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

  test("refuse what is not text, and say what to do", async ({ host }) => {
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

  test("pass a file's own refusals on", async ({ host }) => {
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
  test("replaces exactly one match and keeps the mode", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("run.sh", "#!/bin/sh\necho one\n", { mode: 0o755 });
    const result = await run(sandbox, { kind: "edit", path: "run.sh", find: "one", replace: "two" });
    expect(result).toMatchObject({ outcome: done, value: { count: 1, size: 19 } });
    expect(await text(sandbox, "run.sh")).toBe("#!/bin/sh\necho two\n");
    expect((await sandbox.files.stat("run.sh")).mode & 0o777).toBe(0o755);
  });

  test("that finds none or several changes nothing and says what to do", async ({ host }) => {
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

  test("does not overwrite what somebody else wrote in between", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("f", "one\n");
    const raced = before(sandbox, "write", (path) => sandbox.files.write(path, "theirs\n"));
    const result = await run(raced, { kind: "edit", path: "f", find: "one", replace: "mine" });
    expect(result.outcome).toEqual(refused("mismatch", /changed by something else meanwhile/));
    expect(await text(sandbox, "f")).toBe("theirs\n");
  });
});

describe("patch", () => {
  const diff = `diff --git a/src/a.txt b/src/a.txt
--- a/src/a.txt
+++ b/src/a.txt
@@ -1,2 +1,2 @@
 keep
-old
+new
diff --git a/made.sh b/made.sh
new file mode 100755
--- /dev/null
+++ b/made.sh
@@ -0,0 +1 @@
+echo made
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/here.txt b/sub/there.txt
similarity index 50%
rename from here.txt
rename to sub/there.txt
--- a/here.txt
+++ b/sub/there.txt
@@ -1 +1 @@
-moved
+moved on
`;

  async function ready(sandbox: Sandbox): Promise<void> {
    await sandbox.files.write("src/a.txt", "above\nkeep\nold\n");
    await sandbox.files.write("gone.txt", "bye\n");
    await sandbox.files.write("here.txt", "moved\n", { mode: 0o640 });
  }

  test("changes, makes, removes and renames files in one job", async ({ host }) => {
    const sandbox = await host.sandbox();
    await ready(sandbox);
    const result = await run(sandbox, { kind: "patch", diff });
    expect(result).toMatchObject({ outcome: done, value: { count: 5 } });
    expect(await names(sandbox)).toEqual(["made.sh", "src", "src/a.txt", "sub", "sub/there.txt"]);
    expect(await text(sandbox, "src/a.txt")).toBe("above\nkeep\nnew\n");
    expect(await text(sandbox, "sub/there.txt")).toBe("moved on\n");
    expect((await sandbox.files.stat("made.sh")).mode & 0o777).toBe(0o755);
    expect((await sandbox.files.stat("sub/there.txt")).mode & 0o777).toBe(0o640);
  });

  test("that fits one file and not another changes neither, and names each hunk", async ({ host }) => {
    const sandbox = await host.sandbox();
    await ready(sandbox);
    await sandbox.files.write("gone.txt", "bye bye\n");
    await sandbox.files.write("made.sh", "mine\n");
    const result = await run(sandbox, { kind: "patch", diff });
    expect(result.outcome).toEqual(
      refused(
        "patch-failed",
        /^nothing was changed: made\.sh: it exists already; gone\.txt: hunk 1 \(@@ -1 \+0,0 @@\) does not match anywhere: line 1 is "bye bye", where the patch has "bye"$/,
      ),
    );
    expect(await text(sandbox, "src/a.txt")).toBe("above\nkeep\nold\n");
  });

  test("whose last write cannot be made takes the earlier ones back", async ({ host }) => {
    const sandbox = await host.sandbox();
    await ready(sandbox);
    const raced = before(sandbox, "remove", async (path) => {
      if (path === "here.txt")
        await sandbox.exec({ command: "rm here.txt && mkdir here.txt && touch here.txt/x" });
    });
    const result = await run(raced, { kind: "patch", diff });
    expect(result.outcome).toMatchObject({
      kind: "refused",
      message: expect.stringMatching(/nothing was changed$/),
    });
    expect(await text(sandbox, "src/a.txt")).toBe("above\nkeep\nold\n");
    expect(await text(sandbox, "gone.txt")).toBe("bye\n");
    expect(await names(sandbox)).toEqual(["gone.txt", "here.txt", "here.txt/x", "src", "src/a.txt", "sub"]);
  });

  test("that is aborted half way takes back what it had done", async ({ host }) => {
    const sandbox = await host.sandbox();
    await ready(sandbox);
    const controller = new AbortController();
    const raced = before(sandbox, "write", async (path) => {
      if (path === "made.sh") controller.abort("stop");
    });
    const result = await run(raced, { kind: "patch", diff }, { signal: controller.signal });
    expect(result.outcome).toEqual({ kind: "cancelled", reason: "stop" });
    expect(await text(sandbox, "src/a.txt")).toBe("above\nkeep\nold\n");
    expect(await names(sandbox)).toEqual(["gone.txt", "here.txt", "src", "src/a.txt"]);
  });

  test("cannot name a file outside the workspace", async ({ host }) => {
    const sandbox = await host.sandbox();
    for (const path of ["../x", "/etc/x"]) {
      const outside = `--- /dev/null\n+++ ${path}\n@@ -0,0 +1 @@\n+x\n`;
      expect((await run(sandbox, { kind: "patch", diff: outside })).outcome).toMatchObject({
        code: "patch-failed",
        message: expect.stringMatching(/invalid path/),
      });
    }
  });
});

describe("searching", () => {
  test("finds text, names and facts, and says when there is more", async ({ host }) => {
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
  test("do what they say, and count", async ({ host }) => {
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
  test("brings many files in one job", async ({ host }) => {
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

  test("writes what it can and names each file it cannot", async ({ host }) => {
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

  test("does not take one path twice", async ({ host }) => {
    const sandbox = await host.sandbox();
    const files = ["a", "./a"].map((path) => ({ path, content: path }));
    expect((await run(sandbox, { kind: "copy", files })).outcome).toEqual(
      refused("invalid-request", /more than once: a/),
    );
  });
});

describe("archive", () => {
  const script = `
    set -e; cd "$(mktemp -d)"
    mkdir -p d/empty; printf hello > d/f; chmod 750 d/f; ln d/f d/same; ln -s ../d/f d/link
    long=$(printf 'n%.0s' $(seq 180)); echo long > d/$long
    head -c 600000 /dev/zero > d/large
    tar -cf - .`;
  const archive = spawnSync("sh", ["-c", script], { maxBuffer: 10_000_000 }).stdout;

  test.for([
    ["plain", archive],
    ["zipped", gzipSync(archive)],
  ] as const)("in, %s, unpacks files, directories and links", async ([_, packed], { host }) => {
    const sandbox = await host.sandbox();
    const request = {
      kind: "archive",
      direction: "in",
      path: "to",
      content: packed.toString("base64"),
    } as const;
    expect(await run(sandbox, request)).toMatchObject({ outcome: done, value: { count: 7 } });
    expect(await names(sandbox)).toEqual([
      "to",
      "to/d",
      "to/d/empty",
      "to/d/f",
      "to/d/large",
      "to/d/link",
      `to/d/${"n".repeat(180)}`,
      "to/d/same",
    ]);
    expect((await sandbox.files.stat("to/d/f")).mode & 0o777).toBe(0o750);
    expect((await sandbox.files.stat("to/d/large")).size).toBe(600_000);
    expect(await text(sandbox, "to/d/link")).toBe("hello");
    expect(await text(sandbox, "to/d/same")).toBe("hello");
    expect((await run(sandbox, request)).outcome, "over what is there").toEqual(done);
  });

  test("in with one bad entry writes nothing at all", async ({ host }) => {
    const sandbox = await host.sandbox();
    const common = { mode: 0o644, modifiedMs: 0 };
    const good: TarItem = { ...common, path: "good", type: "file", bytes: Buffer.from("x") };
    const bad: [TarItem[], RegExp][] = [
      [[{ ...good, path: "../out" }], /"\.\." segment/],
      [[{ ...good, path: "/etc/passwd" }], /absolute/],
      [[{ ...good, path: "/workspace/x" }], /absolute/],
      [[{ ...good, path: "a\nb" }], /control byte/],
      [[{ ...common, path: "l", type: "symlink", target: "../out" }], /leads out of the workspace/],
      [[{ ...common, path: "l", type: "symlink", target: "/etc" }], /leads out of the workspace/],
      [
        [
          { ...common, path: "l", type: "symlink", target: "d" },
          { ...good, path: "l/x" },
        ],
        /l\/x is beneath l/,
      ],
      [[{ ...good, path: "good/x" }], /good\/x is beneath good/],
    ];
    for (const [items, message] of bad) {
      const content = tarOf([good, ...items]).toString("base64");
      const result = await run(sandbox, { kind: "archive", direction: "in", content });
      expect(result.outcome).toEqual(refused("bad-archive", message));
    }
    for (const bytes of [
      Buffer.from("no tar"),
      gzipSync(archive).subarray(0, 400),
      archive.subarray(0, 3_000),
    ]) {
      const content = bytes.toString("base64");
      const result = await run(sandbox, { kind: "archive", direction: "in", content });
      expect(result.outcome).toMatchObject({ kind: "refused", code: "bad-archive" });
    }
    expect(await names(sandbox)).toEqual([]);
  });

  test("in that does not fit the quota says how far it came", async ({ host }) => {
    const sandbox = await host.sandbox({ profile: { limits: { workspaceBytes: 4_000_000 } } });
    // Fifty megabytes in fifty kilobytes.
    const zeros = Buffer.alloc(10_000_000);
    const items = [1, 2, 3, 4, 5].map(
      (index): TarItem => ({ path: `zeros${index}`, type: "file", mode: 0o644, modifiedMs: 0, bytes: zeros }),
    );
    const content = gzipSync(tarOf(items)).toString("base64");
    const result = await run(sandbox, { kind: "archive", direction: "in", content });
    expect(result.outcome).toEqual(refused("quota", /quota.*; 0 of the archive's 5 entries/));
  });

  test("out is what archive in takes, and what tar reads", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({
      command: "mkdir -p a/b/empty; echo x > a/b/x; chmod 755 a/b/x; ln -s b/x a/link; echo no > no",
    });
    const out = await run(sandbox, { kind: "archive", direction: "out", paths: ["a", "a/b"] });
    expect(out).toMatchObject({ outcome: done, value: { encoding: "base64", count: 5 } });
    const content = out.value.content ?? "";
    const listed = spawnSync("tar", ["-tvf", "-"], {
      input: Buffer.from(content, "base64"),
      encoding: "utf8",
    });
    expect(
      listed.stdout
        .trim()
        .split("\n")
        .map((line) => line.replace(/^(\S+) .*:\d\d /, "$1 ")),
    ).toEqual([
      "drwxr-xr-x a/",
      "drwxr-xr-x a/b/",
      "drwxr-xr-x a/b/empty/",
      "-rwxr-xr-x a/b/x",
      "lrwxrwxrwx a/link -> b/x",
    ]);
    expect((await run(sandbox, { kind: "archive", direction: "in", path: "copy", content })).outcome).toEqual(
      done,
    );
    expect(await text(sandbox, "copy/a/link")).toBe("x\n");
    const all = await run(sandbox, { kind: "archive", direction: "out" });
    expect(all.value.count).toBe(12);
  });

  test("out that a result cannot carry is refused", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({ command: "head -c 1048576 /dev/zero > f" });
    expect((await run(sandbox, { kind: "archive", direction: "out" })).outcome).toEqual(
      refused("too-large", /larger than the 1048576 bytes/),
    );
    expect((await run(sandbox, { kind: "archive", direction: "out", paths: ["none"] })).outcome).toEqual(
      refused("not-found", /none/),
    );
  });
});

describe("steps", () => {
  test("run in order in one job, each with its own result", async ({ host }) => {
    const sandbox = await host.sandbox();
    const result = await run(sandbox, {
      kind: "steps",
      steps: [
        { kind: "write", path: "main.py", content: "print(6 * 7)" },
        { kind: "exec", command: "python3 main.py > out; cat out" },
        { kind: "read", path: "out" },
      ],
    });
    expect(result.outcome).toEqual(done);
    expect(result.value.steps?.map(({ outcome }) => outcome.kind)).toEqual(["done", "exited", "done"]);
    expect(result.value.steps?.[2]?.value.content).toBe("42\n");
  });

  test("stop at the first failure, or go on, and end as it did", async ({ host }) => {
    const sandbox = await host.sandbox();
    const steps = [
      { kind: "exec", command: "exit 3" },
      { kind: "read", path: "none" },
      { kind: "write", path: "after", content: "x" },
    ] as const;
    const stopped = await run(sandbox, { kind: "steps", steps: [...steps] });
    expect(stopped.outcome).toEqual({ kind: "exited", code: 3 });
    expect(stopped.value.steps).toHaveLength(1);
    expect(await names(sandbox)).toEqual([]);
    const continued = await run(sandbox, { kind: "steps", steps: [...steps], onFailure: "continue" });
    expect(continued.outcome).toEqual({ kind: "exited", code: 3 });
    expect(continued.value.steps?.map(({ outcome }) => outcome.kind)).toEqual(["exited", "refused", "done"]);
  });

  test("end when they are aborted, even where failures are passed over", async ({ host }) => {
    const sandbox = await host.sandbox();
    const controller = new AbortController();
    const result = await run(
      sandbox,
      {
        kind: "steps",
        steps: [
          { kind: "exec", command: "echo up; sleep 60" },
          { kind: "write", path: "after", content: "x" },
        ],
        onFailure: "continue",
      },
      { signal: controller.signal, onOutput: () => controller.abort("enough") },
    );
    expect(result.outcome).toEqual({ kind: "cancelled", reason: "enough" });
    expect(result.value.steps).toHaveLength(1);
    expect(await names(sandbox)).toEqual([]);
  });

  test("do not carry more in one result than it may", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({ command: "yes 0123456789 | head -c 1000000 > f" });
    const read = { kind: "read", path: "f", lines: 1_000_000 } as const;
    const result = await run(sandbox, {
      kind: "steps",
      steps: [...Array.from({ length: 12 }, () => read), { kind: "exec", command: "cat f" }],
      onFailure: "continue",
    });
    const steps = result.value.steps ?? [];
    expect(steps.slice(0, 12).map(({ outcome }) => outcome.kind)).toEqual([
      ...Array.from({ length: 8 }, () => "done"),
      ...Array.from({ length: 4 }, () => "refused"),
    ]);
    expect(steps[12]).toMatchObject({ outcome: { kind: "exited", code: 0 } });
    expect(JSON.stringify(result).length).toBeLessThan(10_000_000);
  });
});

describe("whatever the kind", () => {
  test("an abort before it begins is cancelled and touches nothing", async ({ host }) => {
    const sandbox = await host.sandbox();
    const signal = AbortSignal.abort("too late");
    for (const request of [
      { kind: "exec", command: "touch a" },
      { kind: "write", path: "a", content: "" },
      { kind: "steps", steps: [{ kind: "write", path: "a", content: "" }] },
    ] satisfies JobRequestInput[]) {
      expect((await run(sandbox, request, { signal })).outcome).toEqual({
        kind: "cancelled",
        reason: "too late",
      });
    }
    expect(await names(sandbox)).toEqual([]);
  });

  test("a fault of ours is thrown and not made an outcome", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.stop();
    for (const request of [
      { kind: "exec", command: "true" },
      { kind: "code", language: "sh", source: "" },
      { kind: "read", path: "a" },
      { kind: "patch", diff: "--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n" },
      { kind: "copy", files: [{ path: "a", content: "" }] },
    ] satisfies JobRequestInput[]) {
      await expect(run(sandbox, request), request.kind).rejects.toSatisfy((error) =>
        isFault(error, "sandbox-stopped"),
      );
    }
  });

  test("an image without init's support does the same", async ({ host }) => {
    const sandbox = await host.sandbox({ profile: { transport: "exec" } });
    const result = await run(sandbox, {
      kind: "steps",
      steps: [
        { kind: "copy", files: ["a", "b", "c"].map((path) => ({ path: `d/${path}`, content: `${path}\n` })) },
        { kind: "edit", path: "d/a", find: "a", replace: "A" },
        { kind: "patch", diff: "--- a/d/b\n+++ b/d/b\n@@ -1 +1 @@\n-b\n+B\n" },
        { kind: "code", language: "python", source: "print(open('d/a').read() + open('d/b').read())" },
        { kind: "archive", direction: "out", paths: ["d"] },
        { kind: "read", path: "d/c" },
      ],
    });
    expect(result.outcome).toEqual(done);
    expect(result.value.steps?.[3]?.value.stdout).toBe("A\nB\n\n");
    expect(result.value.steps?.[4]?.value.count).toBe(4);
    expect(await names(sandbox)).toEqual(["d", "d/a", "d/b", "d/c"]);
  });
});
