import { describe, expect } from "vitest";
import { test } from "../support/host.ts";
import { shown } from "../support/shown.ts";

describe("command in a sandbox", () => {
  test("a command in a sandbox runs in the workspace, not as root, and gives both outputs apart", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const result = shown(await sandbox.exec({ command: "pwd; echo oops >&2; test $(id -u) -ne 0" }));
    expect(result).toEqual({
      outcome: { kind: "exited", code: 0 },
      stdout: "/workspace\n",
      stderr: "oops\n",
    });
  });

  test("a command in a sandbox passes its exit code and its signal on", async ({ host }) => {
    const sandbox = await host.sandbox();
    expect((await sandbox.exec({ command: "exit 42" })).outcome).toEqual({ kind: "exited", code: 42 });
    expect((await sandbox.exec({ command: "kill -SEGV $$" })).outcome).toEqual({
      kind: "signalled",
      signal: 11,
    });
  });

  test("a command in a sandbox sees exactly the environment it is given", async ({ host }) => {
    const sandbox = await host.sandbox({ profile: { env: { LAYER: "profile", KEPT: "yes" } } });
    const result = shown(await sandbox.exec({ argv: ["env"], env: { LAYER: "job" } }));
    expect(result.stdout.trim().split("\n").sort()).toEqual([
      "HOME=/workspace",
      "KEPT=yes",
      "LANG=C.UTF-8",
      "LAYER=job",
      "LOGNAME=sandbox",
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "SHELL=/bin/sh",
      "TERM=dumb",
      "TMPDIR=/tmp",
      "USER=sandbox",
    ]);
  });

  test("a command in a sandbox has a user name, a home and a localhost, and can change none of them", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const program = `
import getpass, grp, os, pwd, socket
me = pwd.getpwuid(os.getuid())
server = socket.create_server(("localhost", 0))
socket.create_connection(("localhost", server.getsockname()[1])).close()
print(getpass.getuser(), me.pw_name, me.pw_dir, grp.getgrgid(os.getgid()).gr_name, os.path.expanduser("~sandbox"))
print(pwd.getpwnam("root").pw_uid, pwd.getpwnam("nobody").pw_uid, socket.gethostbyname("localhost"), socket.gethostbyname("sandbox"))
print([bool(os.statvfs(f"/etc/{name}").f_flag & os.ST_RDONLY) for name in ("passwd", "group", "hosts")])`;
    const named = shown(await sandbox.exec({ command: "whoami; id -un; id -gn" }));
    expect(named).toMatchObject({ stdout: "sandbox\nsandbox\nsandbox\n", stderr: "" });
    const { stdout, stderr } = shown(
      await sandbox.exec({ argv: ["python3", "-c", program], env: { USER: "", LOGNAME: "" } }),
    );
    expect(stderr).toBe("");
    expect(stdout.trim().split("\n")).toEqual([
      "sandbox sandbox /workspace sandbox /workspace",
      "0 65534 127.0.0.1 127.0.0.1",
      "[True, True, True]",
    ]);
  });

  test("a command in a sandbox has the home of its profile", async ({ host }) => {
    const profile = { env: { HOME: "/tmp/home" }, image: "berth-busybox:test" };
    const sandbox = await host.sandbox({ profile });
    const result = shown(
      await sandbox.exec({ command: "whoami; echo ~ ~sandbox ~root; nc localhost 9 2>&1" }),
    );
    expect(result.stdout).toMatch(/^sandbox\n\/tmp\/home \/tmp\/home \/root\n/);
    expect(result.stdout).toContain("refused");
  });

  test("a command in a sandbox as an argument vector is touched by no shell", async ({ host }) => {
    const sandbox = await host.sandbox();
    const result = shown(await sandbox.exec({ argv: ["printf", "%s", "$(id) ; `ls` > x"] }));
    expect(result.stdout).toBe("$(id) ; `ls` > x");
  });

  test("a command in a sandbox that does not exist is refused by name", async ({ host }) => {
    const sandbox = await host.sandbox();
    const { outcome } = await sandbox.exec({ argv: ["no-such-program"] });
    expect(outcome).toMatchObject({ kind: "refused", code: "command-not-found" });
    expect(outcome).toHaveProperty("message", expect.stringContaining("no-such-program"));
  });

  test("a command in a sandbox runs beneath the workspace only", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({ command: "mkdir -p a/b && ln -s a/b in && ln -s /etc out" });
    expect(shown(await sandbox.exec({ command: "pwd -P", cwd: "a/b" })).stdout).toBe("/workspace/a/b\n");
    expect(shown(await sandbox.exec({ command: "pwd -P", cwd: "in" })).stdout).toBe("/workspace/a/b\n");
    expect((await sandbox.exec({ command: "pwd", cwd: "out" })).outcome).toMatchObject({
      code: "outside-workspace",
    });
    expect((await sandbox.exec({ command: "pwd", cwd: "none" })).outcome).toMatchObject({
      code: "not-found",
    });
    expect((await sandbox.exec({ command: "pwd", cwd: "../etc" })).outcome).toMatchObject({
      kind: "refused",
      code: "invalid-request",
    });
  });

  test("a command in a sandbox reads its stdin to the end, whether it comes at once or bit by bit", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const large = "x".repeat(3_000_000);
    expect(shown(await sandbox.exec({ command: "wc -c", stdin: large })).stdout.trim()).toBe("3000000");
    async function* parts() {
      for (let index = 0; index < 100; index++) yield Buffer.from(`${index}\n`);
    }
    expect(shown(await sandbox.exec({ command: "tail -n 1" }, { stdin: parts() })).stdout).toBe("99\n");
    expect(shown(await sandbox.exec({ command: "cat" })).stdout).toBe("");
  });

  test("a command in a sandbox that stops reading its stdin still ends", async ({ host }) => {
    const sandbox = await host.sandbox();
    const result = await sandbox.exec({ command: "head -c 5", stdin: "y".repeat(2_000_000) });
    expect(shown(result)).toMatchObject({ outcome: { kind: "exited", code: 0 }, stdout: "yyyyy" });
  });

  test("a command in a sandbox past its time is killed with everything it started", async ({ host }) => {
    const sandbox = await host.sandbox();
    const command = "trap '' TERM; (setsid sleep 1234 &) ; sleep 1234 & echo up; while :; do sleep 1; done";
    const result = await sandbox.exec({ command, limits: { timeoutMs: 500, graceMs: 200 } });
    expect(shown(result)).toMatchObject({ outcome: { kind: "timed-out", afterMs: 500 }, stdout: "up\n" });
    expect(shown(await sandbox.exec({ command: "ps -e -o args= | grep -c '[s]leep 1234'" })).stdout).toBe(
      "0\n",
    );
  });

  test("a command in a sandbox cannot ask for more than its profile allows", async ({ host }) => {
    const sandbox = await host.sandbox({ profile: { exec: { timeoutMs: 400, graceMs: 0 } } });
    const { outcome } = await sandbox.exec({ command: "sleep 20", limits: { timeoutMs: 20_000 } });
    expect(outcome).toEqual({ kind: "timed-out", afterMs: 400 });
  });

  test("a command in a sandbox is cancelled by its caller's signal, with the caller's reason", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const controller = new AbortController();
    const running = sandbox.exec(
      { command: "echo go; sleep 60" },
      { signal: controller.signal, onOutput: () => controller.abort("enough") },
    );
    expect((await running).outcome).toEqual({ kind: "cancelled", reason: "enough" });
    const never = await sandbox.exec({ command: "echo ran > ran" }, { signal: controller.signal });
    expect(never.outcome.kind).toBe("cancelled");
    expect((await sandbox.exec({ command: "test -e ran" })).outcome).toEqual({ kind: "exited", code: 1 });
  });

  test("a command in a sandbox ends when it ends, even if a child in the background holds its output", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const result = await sandbox.exec({ command: "sleep 1235 & echo done" });
    expect(shown(result)).toMatchObject({ outcome: { kind: "exited", code: 0 }, stdout: "done\n" });
    expect(result.backgroundProcesses).toBe(1);
    expect(shown(await sandbox.exec({ command: "ps -e -o args= | grep -c '[s]leep 1235'" })).stdout).toBe(
      "1\n",
    );
  });

  test("a command in a sandbox leaves nothing behind with background: kill", async ({ host }) => {
    const sandbox = await host.sandbox();
    await sandbox.exec({ command: "sleep 1236 & setsid sleep 1236 & echo done", background: "kill" });
    expect(shown(await sandbox.exec({ command: "ps -e -o args= | grep -c '[s]leep 1236'" })).stdout).toBe(
      "0\n",
    );
  });

  test("a command in a sandbox keeps the head and tail of a long output and counts the middle", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const { output } = await sandbox.exec({ command: "seq 1 1000000", limits: { keptBytes: 10_000 } });
    expect(output.totalBytes).toBe(6_888_896);
    expect(Buffer.from(output.head[0]?.bytes ?? []).toString()).toMatch(/^1\n2\n/);
    expect(Buffer.concat(output.tail.map(({ bytes }) => bytes)).toString()).toMatch(/999999\n1000000\n$/);
    expect(output.cutBytes).toBe(6_888_896 - 10_000);
  });

  test("a command in a sandbox is stopped when it writes more than it may", async ({ host }) => {
    const sandbox = await host.sandbox();
    const { outcome, output } = await sandbox.exec({ command: "yes", limits: { outputBytes: 5_000_000 } });
    expect(outcome).toEqual({ kind: "output-limit", limitBytes: 5_000_000 });
    expect(output.totalBytes).toBeLessThan(12_000_000);
  });

  test("a command in a sandbox whose output is not taken waits, and its neighbours do not", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const gate = Promise.withResolvers<void>();
    const blocked = sandbox.exec({ command: "yes | head -c 20000000" }, { onOutput: () => gate.promise });
    for (let count = 0; count < 5; count++) {
      expect((await sandbox.exec({ command: "echo fine" })).outcome).toEqual({ kind: "exited", code: 0 });
    }
    gate.resolve();
    expect((await blocked).output.totalBytes).toBe(20_000_000);
  });

  test("a command in a sandbox is stopped when the consumer of its output fails, and the failure is thrown", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const broken = () => Promise.reject(new Error("the consumer broke"));
    await expect(sandbox.exec({ command: "yes" }, { onOutput: broken })).rejects.toThrow(
      "the consumer broke",
    );
    expect(shown(await sandbox.exec({ command: "ps -e -o comm= | grep -c '^yes'" })).stdout).toBe("0\n");
  });

  test("a command in a sandbox runs beside many others", async ({ host }) => {
    const sandbox = await host.sandbox();
    const all = await Promise.all(
      Array.from({ length: 40 }, (_, index) => sandbox.exec({ command: `echo ${index}; exit ${index}` })),
    );
    expect(all.map((one) => [one.outcome, shown(one).stdout])).toEqual(
      all.map((_, index) => [{ kind: "exited", code: index }, `${index}\n`]),
    );
  });

  test("a command of a hundred kilobytes runs", async ({ host }) => {
    const sandbox = await host.sandbox();
    const command = `: ${"x".repeat(100_000)}; echo ok`;
    expect(shown(await sandbox.exec({ command })).stdout).toBe("ok\n");
  });

  test("a command in a sandbox that is malformed is refused with every problem named", async ({ host }) => {
    const sandbox = await host.sandbox();
    const { outcome } = await sandbox.exec({ command: "a\0b", cwd: "/etc", env: { "A B": "x" } });
    expect(outcome).toMatchObject({ kind: "refused", code: "invalid-request" });
    const { message } = outcome as { message: string };
    expect(message).toMatch(/command: it has a NUL byte/);
    expect(message).toMatch(/cwd: invalid path: it is absolute/);
    expect(message).toMatch(/env/);
  });

  test("out of memory is read from the kernel's count, also when only a child was killed", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile: { limits: { memoryBytes: 64 * 1024 * 1024 } } });
    const hog = "python3 -c 'x = bytearray(200 * 1024 * 1024)'";
    const expected = { kind: "out-of-memory", limitBytes: 64 * 1024 * 1024 };
    expect((await sandbox.exec({ command: `exec ${hog}` })).outcome).toEqual(expected);
    expect((await sandbox.exec({ command: `${hog}; exit 3` })).outcome).toEqual(expected);
    const survived = await sandbox.exec({ command: `${hog}; true` });
    expect(survived).toMatchObject({ outcome: { kind: "exited", code: 0 }, oomKills: 1 });
    expect((await sandbox.exec({ command: "kill -KILL $$" })).outcome).toEqual({
      kind: "signalled",
      signal: 9,
    });
  });
});
