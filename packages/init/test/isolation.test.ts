import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { write } from "./support/files.ts";
import { Init, isRoot } from "./support/init-process.ts";

// As in a sandbox: process 1, one uid for init and tenant, no capability.
const sandboxed = { asProcess1: true, uid: 54_321 } as const;

describe.runIf(isRoot)("tenant with init's own uid", () => {
  test("a tenant with init's own uid sees neither init's descriptors, memory nor environment, and cannot trace it or its keepers", async () => {
    const init = await Init.start(sandboxed);
    const probe = [
      "import ctypes, os",
      "libc = ctypes.CDLL(None, use_errno=True)",
      "def attempt(f):",
      "  try: f(); return 'yes'",
      "  except OSError: return 'no'",
      "for pid in (1, os.getppid()):",
      "  print(attempt(lambda: os.listdir('/proc/%d/fd' % pid)), attempt(lambda: open('/proc/%d/fd/1' % pid, 'w')),",
      "        attempt(lambda: open('/proc/%d/mem' % pid, 'rb')), attempt(lambda: open('/proc/%d/environ' % pid).read()),",
      "        attempt(lambda: open('/proc/%d/maps' % pid).read()), attempt(lambda: os.readlink('/proc/%d/cwd' % pid)),",
      "        libc.ptrace(16, pid, 0, 0))",
    ].join("\n");
    const run = init.exec(["python3", "-c", probe]);
    expect((await run.exit()).value).toBe(0);
    expect(run.stdout).toBe("no no no no no no -1\n".repeat(2));
  });

  test("a tenant with init's own uid can be dumped and traced itself, as programs expect", async () => {
    const init = await Init.start(sandboxed);
    const run = init.sh("ls /proc/self/fd >/dev/null && cat /proc/$$/environ >/dev/null && echo fine");
    await run.exit();
    expect(run.stdout).toBe("fine\n");
  });

  test("a tenant with init's own uid gains no privilege by a setuid program", async () => {
    const init = await Init.start(sandboxed);
    const run = init.exec(["grep", "-E", "^(NoNewPrivs|CapEff)", "/proc/self/status"]);
    await run.exit();
    expect(run.stdout.replaceAll(/\s+/g, " ").trim()).toBe("CapEff: 0000000000000000 NoNewPrivs: 1");
  });

  test("a tenant with init's own uid is taken before init when memory runs out", async () => {
    const init = await Init.start(sandboxed);
    const run = init.sh(
      "cat /proc/self/oom_score_adj; sh -c 'cat /proc/self/oom_score_adj'; cat /proc/1/oom_score_adj",
    );
    await run.exit();
    const own = readFileSync("/proc/self/oom_score_adj", "utf8");
    expect(run.stdout).toBe(`500\n500\n${own}`);
  });

  test("a tenant with init's own uid kills what it likes and still has a working sandbox", async () => {
    const init = await Init.start(sandboxed);
    const other = init.sh("sleep 1000");
    await other.started();
    // kill(-1) takes its own shell too, or not: that is the shell's affair.
    await init.exec(["python3", "-c", "import os; os.kill(-1, 9)"]).exit();
    expect(await other.exit()).toMatchObject({ kind: "signalled", value: 9, reason: 0 });
    expect((await init.sh("exit 4").exit()).value).toBe(4);
    expect((await write(init, "a", "x").done()).number(1)).toBe(1);
    expect(init.marked()).toEqual([]);
  });

  test("a tenant with init's own uid cannot start init's end of a conversation: its outputs are its own pipes", async () => {
    const init = await Init.start(sandboxed);
    const run = init.sh("echo fake > /proc/1/fd/1 2>/dev/null; echo fake > /dev/stdout; exit 3");
    expect((await run.exit()).value).toBe(3);
    expect(run.stdout).toBe("fake\n");
    expect(await init.ping()).toBe("ping");
  });
});

/** Runs a program for which the kernel refuses every further seccomp filter. */
const withoutFilters = `
import ctypes, os, platform, struct, sys
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PRCTL = 38, 22, 167 if platform.machine() == "aarch64" else 157
LOAD, IF_EQUAL, RETURN, ALLOW, EINVAL = 0x20, 0x15, 0x06, 0x7fff0000, 0x00050016
code = b"".join(struct.pack("HBBI", *one) for one in [
    (LOAD, 0, 0, 0), (IF_EQUAL, 0, 3, PRCTL), (LOAD, 0, 0, 16), (IF_EQUAL, 0, 1, PR_SET_SECCOMP), (RETURN, 0, 0, EINVAL), (RETURN, 0, 0, ALLOW)])
buffer = ctypes.create_string_buffer(code, len(code))
program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None)
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])`;

describe("the seccomp filter", () => {
  test("HELLO_ACK reports that init's seccomp filter is on", async () => {
    const init = await Init.start();
    expect((await init.hello()).number(8)).toBe(1);
  });

  test("HELLO_ACK reports that the filter is off where the kernel refuses it", async () => {
    const init = await Init.start({ wrapper: ["python3", "-c", withoutFilters] });
    expect((await init.hello()).number(8)).toBe(0);
  });
});

describe("init", () => {
  test("init prints its usage, and does not start without a workspace or a /proc of its own", async () => {
    const wrong = new Init({ workspace: "/no/such/workspace" });
    expect(await wrong.exited).toBe(1);
    expect(wrong.stderr).toContain("/no/such/workspace");
    wrong.forget();
    const relative = new Init({ workspace: "relative" });
    expect(await relative.exited).toBe(1);
    expect(relative.stderr).toContain("usage");
    relative.forget();
  });

  test.runIf(isRoot)("init refuses a /proc of another pid namespace", async () => {
    const init = new Init({ asProcess1: false, wrapper: ["unshare", "--pid", "--fork"] });
    expect(await init.exited).toBe(1);
    expect(init.stderr).toContain("another pid namespace");
    init.forget();
  });
});
