import { FileOp, FileTag, RecordWriter } from "@berth/init";
import { FileRefusal } from "@berth/protocol";
import type { Sandbox } from "@berth/sandbox";
import Docker from "dockerode";
import { describe, expect } from "vitest";
import { AttachedStream } from "../../packages/sandbox/src/docker/attached-stream.ts";
import { InitConnection } from "../../packages/sandbox/src/init/connection.ts";
import { startRequest, type TestHost, test } from "../support/host.ts";
import { sh } from "./inside.ts";

/** Every operation that takes a path, with the path in each place it can stand. */
const operations: Record<string, (sandbox: Sandbox, path: string) => Promise<unknown>> = {
  read: ({ files }, path) => files.read(path),
  write: ({ files }, path) => files.write(path, "attack"),
  append: ({ files }, path) => files.write(path, "attack", { append: true }),
  stat: ({ files }, path) => files.stat(path),
  list: ({ files }, path) => files.list(path),
  remove: ({ files }, path) => files.remove(path, { recursive: true }),
  "move from": ({ files }, path) => files.move(path, "moved-here", { overwrite: true }),
  "move to": ({ files }, path) => files.move("a-file", path, { overwrite: true, parents: true }),
  "make directory": ({ files }, path) => files.makeDirectory(path),
  glob: ({ files }, path) => files.glob("*", { base: path }),
  grep: ({ files }, path) => files.grep("root", { path }),
};

/** The refusal's code, or what happened instead. */
async function refusal(run: Promise<unknown>): Promise<string> {
  return run.then(
    (value) => `not refused: ${JSON.stringify(value)}`,
    (error: unknown) => (error instanceof FileRefusal ? error.code : String(error)),
  );
}

async function everyRefusal(
  sandbox: Sandbox,
  path: string,
  except: readonly string[] = [],
): Promise<Record<string, string>> {
  const answers: Record<string, string> = {};
  for (const [name, run] of Object.entries(operations)) {
    if (!except.includes(name)) answers[name] = await refusal(run(sandbox, path));
  }
  return answers;
}

const badPaths: Record<string, string> = {
  "the parent": "..",
  "a climb": "../../etc/passwd",
  "a climb from below": "a-directory/../../etc/passwd",
  "a climb from the workspace's own name": "/workspace/../etc/passwd",
  "an absolute path": "/etc/passwd",
  "an absolute path with two slashes": "//etc/passwd",
  "a neighbour that begins like the workspace": "/workspace-of-another/file",
  "a NUL": "a-file\0.txt",
  "a newline": "a-file\nroot::0:0::/:/bin/sh",
  "an escape sequence": "\u001b]0;title\u0007",
  "a DEL": "a\u007ffile",
  "a name of 256 bytes": "x".repeat(256),
  "a name of 255 characters in 510 bytes": "é".repeat(255),
  "a path of 4 KiB": `${"d/".repeat(2_048)}x`,
};

test("no operation takes a path that climbs, is absolute, has control bytes or is too long", async ({
  host,
}) => {
  const sandbox = await host.sandbox();
  await sandbox.files.write("a-file", "mine");
  await sandbox.files.makeDirectory("a-directory");
  for (const [what, path] of Object.entries(badPaths)) {
    const answers = new Set(Object.values(await everyRefusal(sandbox, path)));
    expect({ what, answers: [...answers] }).toEqual({ what, answers: ["invalid-path"] });
    const { outcome } = await sandbox.exec({ command: "pwd", cwd: path });
    expect({ what, outcome }).toMatchObject({ what, outcome: { kind: "refused" } });
  }
  expect((await sandbox.files.list("")).items.map(({ path }) => path)).toEqual(["a-directory", "a-file"]);
});

test("init also refuses paths that climb, are absolute, have control bytes or are too long", async ({
  host,
}) => {
  await withRawInit(host, async (connection) => {
    for (const [what, path] of Object.entries(badPaths)) {
      for (const op of Object.values(FileOp)) {
        const request = new RecordWriter()
          .add(FileTag.op, op)
          .add(FileTag.path, path)
          .add(FileTag.path2, path)
          .add(FileTag.name, path);
        request
          .add(FileTag.size, 0)
          .add(FileTag.pattern, "x")
          .add(FileTag.credit, 65_536)
          .add(FileTag.maxItems, 10);
        let data = "";
        const onData = (bytes: Uint8Array) => {
          data += Buffer.from(bytes).toString("latin1");
        };
        const end = await connection.file(request.finish(), { onData, onItem: () => {} }).end;
        // A pack goes on after a name that it refuses, and sends the refusal in place of the file.
        const [refused = "done"] = /invalid-path|outside-workspace/.exec(data) ?? [];
        const code = end.kind === "failed" ? end.failure.code : refused;
        expect(`${what}, operation ${op}: ${code}`).toMatch(
          /: (invalid-path|outside-workspace|bad-request)$/,
        );
      }
    }
  });
});

/** A conversation with a real init in which the worker's own checks have no part. */
async function withRawInit(
  host: TestHost,
  use: (connection: InitConnection) => Promise<void>,
): Promise<void> {
  const driver = host.driver();
  const sandbox = await driver.start(startRequest());
  sandbox.detach();
  const [record] = await driver.list();
  const socket = await new Docker()
    .getContainer(record?.id ?? "")
    .attach({ stream: true, stdin: true, stdout: true, stderr: true, hijack: true });
  const stream = new AttachedStream(socket as unknown as ConstructorParameters<typeof AttachedStream>[0]);
  const connection = new InitConnection(stream, {
    sandboxKey: "acme",
    epoch: 2,
    leaseMs: 10_000,
    deadlineMs: 10_000,
    resync: true,
  });
  try {
    await connection.open();
    await use(connection);
  } finally {
    connection.close();
    await driver.reap(() => true);
  }
}

describe("symbolic link", () => {
  const targets = [
    "/etc/shadow",
    "/etc",
    "../../etc",
    "/proc/self/root",
    "/proc/1/root/etc",
    "/proc/self/fd/0",
    "/",
    "/dev/zero",
    "/tmp/outside",
    "../workspace/../tmp/outside",
  ];

  test("a symbolic link that leads out of the workspace is refused by every operation that would follow it", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    await sandbox.files.write("a-file", "mine");
    await sh(sandbox, "mkdir /tmp/outside; echo outside > /tmp/outside/passwd");
    for (const target of targets) {
      await sh(sandbox, `rm -f link; ln -s ${target} link`);
      const below = await everyRefusal(sandbox, "link/passwd");
      expect({ target, below }).toEqual({
        target,
        below: Object.fromEntries(Object.keys(operations).map((name) => [name, "outside-workspace"])),
      });
      // These act on the link itself, and take nothing with them.
      const itself = await everyRefusal(sandbox, "link", [
        "remove",
        "move from",
        "move to",
        "write",
        "make directory",
      ]);
      expect({ target, itself: [...new Set(Object.values(itself))] }).toEqual({
        target,
        itself: ["outside-workspace"],
      });
      expect(await refusal(sandbox.files.write("link", "attack"))).toMatch(/outside-workspace|not-a-file/);
      expect((await sandbox.exec({ command: "pwd", cwd: "link" })).outcome).toMatchObject({
        kind: "refused",
      });
      expect(await sandbox.files.stat("link", { followLinks: false })).toMatchObject({
        type: "symlink",
        target,
      });
      expect((await sandbox.files.list("", { recursive: true })).items.map(({ path }) => path)).toEqual([
        "a-file",
        "link",
      ]);
      expect((await sandbox.files.grep("outside")).items).toEqual([]);
      expect((await sandbox.files.glob("**/*")).items.map(({ path }) => path)).toEqual(["a-file", "link"]);
    }
    expect(await sandbox.files.remove("link", { recursive: true })).toBe(1);
    expect((await sh(sandbox, "cat /tmp/outside/passwd; ls /tmp/outside")).stdout).toBe("outside\npasswd\n");
  });

  test("a symbolic link in a circle or a long chain is refused, and one that stays inside works", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    await sh(
      sandbox,
      "ln -s b a; ln -s a b; echo deep > c0; for n in $(seq 60); do ln -s c$((n-1)) c$n; done",
    );
    await sh(
      sandbox,
      "mkdir -p d/e; echo inside > d/e/file; ln -s ../d/./e/../e d/in; ln -s /workspace/d/e absolute",
    );
    expect(await refusal(sandbox.files.read("a"))).toBe("too-many-links");
    expect(await refusal(sandbox.files.read("c60"))).toBe("too-many-links");
    for (const path of ["d/in/file", "absolute/file", "c5"]) {
      expect(Buffer.from((await sandbox.files.read(path)).bytes).toString()).toMatch(/^(inside|deep)\n$/);
    }
  });
});

test("a hard link to a file outside cannot be made, and a write never goes through one inside", async ({
  host,
}) => {
  const sandbox = await host.sandbox();
  const { stdout } = await sh(
    sandbox,
    "echo one > first; ln first second; ln /etc/passwd stolen 2>&1 | grep -c 'failed'; echo o > /tmp/o; ln /tmp/o over 2>&1 | grep -c failed",
  );
  expect(stdout).toBe("1\n1\n");
  await sandbox.files.write("second", "two");
  expect((await sh(sandbox, "cat first second")).stdout).toBe("one\ntwo");
});

test("pipes, sockets and other oddities are refused at once instead of blocking, and do not stop a walk", async ({
  host,
}) => {
  const sandbox = await host.sandbox();
  await sh(
    sandbox,
    `mkdir odd; cd odd; mkfifo pipe; echo needle > file; ln -s pipe to-pipe; python3 -c '
import socket; socket.socket(socket.AF_UNIX).bind("socket")'`,
  );
  for (const name of ["odd/pipe", "odd/socket", "odd/to-pipe"]) {
    expect({ name, read: await refusal(sandbox.files.read(name)) }).toEqual({ name, read: "not-a-file" });
    expect({ name, append: await refusal(sandbox.files.write(name, "x", { append: true })) }).toEqual({
      name,
      append: "not-a-file",
    });
  }
  expect((await sandbox.files.list("odd")).items.map(({ path, type }) => `${type} ${path}`)).toEqual([
    "file odd/file",
    "other odd/pipe",
    "other odd/socket",
    "symlink odd/to-pipe",
  ]);
  expect((await sandbox.files.grep("needle")).items).toMatchObject([{ path: "odd/file", line: 1 }]);
  expect(await sandbox.usage()).toMatchObject({ entries: 5, partial: false });
  expect(await sandbox.files.remove("odd", { recursive: true })).toBe(5);
});
