import { gzipSync } from "node:zlib";
import { encodeFiles } from "@berth/init";
import { FileRefusal, type WorkspaceUsage } from "@berth/protocol";
import type { Sandbox } from "@berth/sandbox";
import { describe, expect } from "vitest";
import { test } from "../support/host.ts";
import { shown } from "../support/shown.ts";
import { processes, python, sh, syscalls, threadLeftBehind } from "./inside.ts";

const mebibyte = 1024 * 1024;
const limit = 32 * mebibyte;
const profile = { limits: { workspaceBytes: limit }, exec: { timeoutMs: 30_000, graceMs: 100 } };

/** Far over the limit if it is not stopped, and slow enough that a second of it is little: 4 MiB every 50 ms. */
const fill = (name: string, files = 500) =>
  `n=0; while [ $n -lt ${files} ]; do n=$((n+1)); head -c ${4 * mebibyte} /dev/zero > /workspace/${name}-$n; sleep 0.05; done`;

/** Python that holds files open which it has deleted: far over the limit, as slowly as `fill`. */
const unlinkedWork = `held = []
for number in range(500):
    file = open("/workspace/gone", "wb"); os.unlink("/workspace/gone")
    file.write(bytes(${4 * mebibyte})); file.flush(); held.append(file); time.sleep(0.05)`;

async function stoppedInTime(sandbox: Sandbox): Promise<WorkspaceUsage> {
  const usage = await sandbox.usage();
  // Three seconds of filling above the limit, on a machine that does other things too; all of it would be two gigabytes.
  expect(usage.bytes).toBeLessThan(limit + 60 * 4 * mebibyte);
  return usage;
}

async function refusalOf(run: Promise<unknown>): Promise<unknown> {
  return run.then(
    () => "not refused",
    (error: unknown) => (error instanceof FileRefusal ? error.code : error),
  );
}

test("a command that fills the workspace is stopped soon after it passes the quota", async ({ host }) => {
  const sandbox = await host.sandbox({ profile });
  await sandbox.files.write("mine", "precious");
  const { outcome } = await sh(sandbox, fill("fill"));
  expect(outcome).toMatchObject({ kind: "quota-exceeded", limit, unit: "bytes" });
  await stoppedInTime(sandbox);
  expect(await refusalOf(sandbox.files.write("more", Buffer.alloc(mebibyte)))).toBe("quota");
  expect(await refusalOf(sandbox.files.write("mine", Buffer.alloc(mebibyte), { append: true }))).toBe(
    "quota",
  );
  expect(Buffer.from((await sandbox.files.read("mine")).bytes).toString()).toBe("precious");
  expect((await sh(sandbox, "cat mine; rm fill-*")).outcome).toEqual({ kind: "exited", code: 0 });
  expect(await sandbox.files.write("more", Buffer.alloc(mebibyte))).toMatchObject({ created: true });
});

describe("workspace that is over its quota stays closed to growth", () => {
  /** A second of it would be hundreds of megabytes; the test is about any of it. */
  const grow = `head -c ${8 * mebibyte} /dev/zero > more-$(date +%s%N)`;

  async function filled(sandbox: Sandbox): Promise<number> {
    expect((await sh(sandbox, fill("fill"))).outcome.kind).toBe("quota-exceeded");
    return (await sandbox.usage()).bytes;
  }

  async function expectNoGrowth(sandbox: Sandbox, before: number): Promise<void> {
    expect((await sh(sandbox, grow)).outcome).toMatchObject({ kind: "quota-exceeded", unit: "bytes" });
    // The new file itself is made, empty, and a directory's entry for it.
    expect((await sandbox.usage()).bytes).toBeLessThan(before + mebibyte);
  }

  test("removing or moving a missing path does not reopen a workspace that is over its quota", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    const before = await filled(sandbox);
    for (let round = 0; round < 5; round++) {
      await sandbox.files.remove("nothing", { missingOk: true });
      await expectNoGrowth(sandbox, before);
      expect(await refusalOf(sandbox.files.move("nothing", "nowhere"))).toBe("not-found");
      await expectNoGrowth(sandbox, before);
    }
  });

  test("a workspace that is over its quota stays closed to growth after its container died and was replaced", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    const before = await filled(sandbox);
    await host.driver().reap(() => true);
    await expectNoGrowth(sandbox, before);
    expect(sandbox.origin.restarts).toBe(1);
  });

  test("a workspace over its quota stays closed to growth for the sandbox's next holder", async ({
    host,
  }) => {
    const first = await host.sandbox({ profile });
    const before = await filled(first);
    first.detach();
    const adopter = await host.sandbox({ profile, epoch: 2 });
    expect(adopter.origin.how).toBe("adopted");
    await expectNoGrowth(adopter, before);
    await adopter.stop();
    const next = await host.sandbox({ profile, epoch: 3 });
    await expectNoGrowth(next, before);
    expect((await sh(next, "rm fill-*")).outcome).toEqual({ kind: "exited", code: 0 });
    expect((await sh(next, grow)).outcome).toEqual({ kind: "exited", code: 0 });
  });
});

test("a file that is written again and again counts once", async ({ host }) => {
  const sandbox = await host.sandbox({ profile });
  for (let round = 0; round < 8; round++)
    await sandbox.files.write("same", Buffer.alloc(8 * mebibyte, round));
  expect((await sh(sandbox, "head -c 1000000 /dev/zero > other")).outcome).toEqual({
    kind: "exited",
    code: 0,
  });
});

describe("quota is not passed by", () => {
  test("the quota stops one large file at the limit, to the byte", async ({ host }) => {
    const sandbox = await host.sandbox({ profile });
    const { outcome } = await sh(sandbox, "cat /dev/zero > one");
    expect(outcome).not.toEqual({ kind: "exited", code: 0 });
    expect((await sandbox.files.stat("one")).size).toBeLessThanOrEqual(limit);
  });

  test("the quota is not passed by many short commands, each over before the guard looks", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    const kinds = new Set<string>();
    const rounds = 150;
    for (let round = 0; round < rounds; round++) {
      const { outcome } = await sh(sandbox, `head -c ${4 * mebibyte} /dev/zero > short-${round}`);
      kinds.add(outcome.kind);
    }
    expect(kinds).toContain("quota-exceeded");
    // On a busy machine the guard looks late, and dozens of them fit before its first look.
    const { bytes: before } = await sandbox.usage();
    expect(before).toBeLessThan((rounds * 4 * mebibyte) / 2);
    // Once it has looked, nothing more fits, however fast the machine is.
    const { outcome } = await sh(sandbox, `head -c ${4 * mebibyte} /dev/zero > short-after`);
    expect(outcome).toMatchObject({ kind: "quota-exceeded", unit: "bytes" });
    expect((await sandbox.usage()).bytes).toBeLessThan(before + mebibyte);
  });

  const deep = (name: string) => `${name}/${"d/".repeat(1_000)}file`;
  const onTheWay: Record<string, (sandbox: Sandbox, name: string) => Promise<unknown>> = {
    "a write": (sandbox, name) => sandbox.files.write(deep(name), "x"),
    "a new directory": (sandbox, name) => sandbox.files.makeDirectory(deep(name)),
    "a move": async (sandbox, name) => {
      await sandbox.files.write(`${name}-from`, "x");
      await sandbox.files.move(`${name}-from`, deep(name), { parents: true });
    },
    "many files": async (sandbox, name) => {
      const bytes = Buffer.from("x");
      const files = [0, 1].map((number) => ({ path: deep(`${name}-${number}`), bytes }));
      for (const { refusal } of (await sandbox.files.writeMany(files)).refused) throw refusal;
    },
    "an archive": async (sandbox, name) => {
      const archive = gzipSync(
        encodeFiles([0, 1].map((number) => ({ path: deep(`${name}-${number}`), bytes: Buffer.from("x") }))),
      );
      for (const { refusal } of (await sandbox.files.unpack(archive)).refused) throw refusal;
    },
  };

  test.for(Object.keys(onTheWay))(
    "the quota is not passed by directories on the way to %s",
    async (what, { host }) => {
      const sandbox = await host.sandbox({ profile });
      const answers: unknown[] = [];
      // Each takes 4 MB or more for a kilobyte of request.
      for (let number = 0; number < 20; number++)
        answers.push(await refusalOf(onTheWay[what]?.(sandbox, `n${number}`) ?? Promise.resolve()));
      expect(answers[0]).toBe("not refused");
      expect(answers.at(-1)).toBe("quota");
      expect((await sandbox.usage()).bytes).toBeLessThan(limit + mebibyte);
    },
  );

  test("the quota is not passed by directories on the way to writes at once, of which each alone would fit", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    const writes = Array.from({ length: 24 }, (_, n) =>
      refusalOf(sandbox.files.write(deep(`parallel-${n}`), "x")),
    );
    const answers = await Promise.all(writes);
    expect(answers).toContain("quota");
    expect(answers.filter((answer) => answer === "not refused").length).toBeGreaterThan(4);
    expect((await sandbox.usage()).bytes).toBeLessThan(limit + mebibyte);
  });

  test("the number of entries is not passed by directories on the way to a file", async ({ host }) => {
    const entries = 1_500;
    const sandbox = await host.sandbox({ profile: { limits: { workspaceEntries: entries } } });
    expect(await refusalOf(sandbox.files.write(deep("one"), "x"))).toBe("not refused");
    expect(await refusalOf(sandbox.files.write(deep("two"), "x"))).toBe("quota");
    expect((await sandbox.usage()).entries).toBeLessThanOrEqual(entries);
  });

  test("the quota is not passed by many writes at once, of which each alone would fit", async ({ host }) => {
    const sandbox = await host.sandbox({ profile });
    const writes = Array.from({ length: 30 }, (_, n) =>
      refusalOf(sandbox.files.write(`parallel-${n}`, Buffer.alloc(4 * mebibyte, 1))),
    );
    const answers = await Promise.all(writes);
    expect(answers.filter((answer) => answer === "quota").length).toBeGreaterThan(20);
    expect(answers.filter((answer) => answer === "not refused").length).toBeGreaterThan(4);
    expect((await sandbox.usage()).bytes).toBeLessThanOrEqual(limit);
  });

  const leftBehind: Record<string, string> = {
    "a process": `(${fill("background")}; touch /workspace/finished) > /dev/null 2>&1 &`,
    "a process whose main thread has exited": threadLeftBehind(`for number in range(500):
    with open(f"/workspace/thread-{number}", "wb") as file: file.write(bytes(${4 * mebibyte}))
    time.sleep(0.05)
open("/workspace/finished", "w")`),
  };

  test.for(Object.keys(leftBehind))(
    "the quota is not passed by %s that a command leaves running in the background",
    async (what, { host }) => {
      const sandbox = await host.sandbox({ profile });
      const { outcome } = await sh(sandbox, leftBehind[what] ?? "");
      expect(outcome).toEqual({ kind: "exited", code: 0 });
      // Filling would take ten seconds and more; the process that fills must be gone long before.
      let last = -1;
      await expect
        .poll(
          async () => {
            const { bytes } = await sandbox.usage();
            const grown = bytes > last;
            last = bytes;
            return bytes > limit && !grown;
          },
          { timeout: 30_000, interval: 700 },
        )
        .toBe(true);
      await stoppedInTime(sandbox);
      expect(await refusalOf(sandbox.files.stat("finished"))).toBe("not-found");
    },
  );

  test("the quota is not passed by files that are deleted while they are held open", async ({ host }) => {
    const sandbox = await host.sandbox({ profile });
    const { outcome } = await sh(sandbox, unlinkedFill(""));
    expect(outcome).toMatchObject({ kind: "quota-exceeded", unit: "bytes" });
    expect((await sandbox.usage()).unlinkedBytes).toBe(0);
  });

  test("the quota is not passed by deleted files of a process that hides what it holds", async ({ host }) => {
    const sandbox = await host.sandbox({ profile });
    const { outcome } = await sh(
      sandbox,
      unlinkedFill("import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)"),
    );
    expect(outcome).toMatchObject({ kind: "quota-exceeded", unit: "bytes" });
  });

  test("the quota is not passed by deleted files of a process whose main thread has exited", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    const { outcome } = await sh(sandbox, threadLeftBehind(unlinkedWork, "time.sleep(60)"));
    expect(outcome).toMatchObject({ kind: "quota-exceeded", unit: "bytes" });
    expect((await sandbox.usage()).unlinkedBytes).toBe(0);
  });

  describe("a program that its user may execute but not read", () => {
    const unreadable =
      "cp /usr/bin/python3 x && chmod 111 x && export PYTHONHOME=/usr PYTHONDONTWRITEBYTECODE=1";
    const names = async (sandbox: Sandbox) =>
      (await processes(sandbox)).filter(({ command }) => command.startsWith("./x"));

    test("init stops a command whose unreadable program holds deleted files, and its result says why", async ({
      host,
    }) => {
      const sandbox = await host.sandbox({ profile });
      const { outcome } = await sh(sandbox, `${unreadable}; ${unlinkedFill("", "./x")}`);
      expect(outcome).toMatchObject({ kind: "cancelled", reason: expect.stringContaining("not read") });
      expect(await names(sandbox)).toEqual([]);
      expect((await sh(sandbox, "echo alive")).stdout).toBe("alive\n");
      expect(sandbox.origin.restarts).toBe(0);
    });

    test("init ends what an unreadable program left in the background, and nothing else", async ({
      host,
    }) => {
      const sandbox = await host.sandbox({ profile });
      const fork = "if os.fork(): os._exit(0)\nos.setsid(); os.closerange(0, 3)";
      const gone = Promise.withResolvers<void>();
      const other = sandbox.exec(
        { argv: ["cat"] },
        {
          stdin: (async function* () {
            await gone.promise;
            yield Buffer.from("still here");
          })(),
        },
      );
      const { outcome } = await sh(sandbox, `${unreadable}; ${unlinkedFill(fork, "./x")}`);
      expect(["exited", "cancelled"]).toContain(outcome.kind);
      await expect.poll(() => names(sandbox), { timeout: 30_000 }).toEqual([]);
      gone.resolve();
      expect(shown(await other)).toMatchObject({
        outcome: { kind: "exited", code: 0 },
        stdout: "still here",
      });
      expect(sandbox.origin.restarts).toBe(0);
    });
  });

  test("the quota is not passed by a thread with descriptors of its own: no process can make one", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    const answers = await python<Record<string, string>>(
      sandbox,
      `${syscalls}
VM, FS, FILES, SIGHAND, THREAD = 0x100, 0x200, 0x400, 0x800, 0x10000
stack = ctypes.create_string_buffer(65536)
top = ctypes.c_void_p(ctypes.addressof(stack) + 65536)
print(json.dumps({
    "clone": call(56, 220, VM | FS | SIGHAND | THREAD, top, 0, 0, 0),
    "clone3": call(435, 435, None, 0),
    "close_range": call(436, 436, 1000, 1001, 2),
    "unshare": call(272, 97, FILES),
}))`,
    );
    expect(answers).toEqual({
      clone: "EINVAL",
      clone3: "ENOSYS",
      close_range: "EINVAL",
      unshare: expect.stringMatching(/^(EINVAL|EPERM)$/),
    });
  });

  test("the quota is not passed by directories without permissions, or nested a thousand deep", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    const { outcome } = await sh(
      sandbox,
      `python3 -c '
import os, time
os.mkdir("dark"); dark = os.open("dark", os.O_RDONLY)
for depth in range(1000): os.mkdir("deep"); os.chdir("deep")
for number in range(500):
    os.chmod(dark, 0o700)
    for where in (dark, os.open(".", os.O_RDONLY)):
        with open(os.open(f"fill-{number}", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=where), "wb") as file: file.write(bytes(${2 * mebibyte}))
    os.chmod(dark, 0)
    time.sleep(0.05)'`,
    );
    expect(outcome).toMatchObject({ kind: "quota-exceeded", unit: "bytes" });
    await stoppedInTime(sandbox);
    expect(await sandbox.files.remove("dark", { recursive: true })).toBeGreaterThan(1);
    expect(await sandbox.files.remove("deep", { recursive: true })).toBeGreaterThan(1_000);
  });

  test("the quota is not passed by removing all permissions and writing to files opened before", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    const { outcome } = await sh(
      sandbox,
      `python3 -c '
import os, time
held = [open(f"held-{number}", "wb") for number in range(300)]
os.chmod("/workspace", 0)
for file in held: file.write(bytes(${2 * mebibyte})); file.flush(); time.sleep(0.05)'`,
    );
    expect(outcome).toMatchObject({ kind: "quota-exceeded", unit: "bytes" });
    await stoppedInTime(sandbox);
    expect((await sh(sandbox, "rm held-*; echo usable")).stdout).toBe("usable\n");
  });

  test.for(["KILL", "STOP"])(
    "the quota is not passed by sending SIG%s to the measuring process",
    async (signal, { host }) => {
      const sandbox = await host.sandbox({ profile });
      // Enough entries that measuring takes a while.
      const many = await sh(
        sandbox,
        `python3 -c '
import os
os.mkdir("many"); open("many/base", "w").close()
for number in range(30000): os.link("many/base", f"many/{number}")'`,
      );
      expect(many.outcome).toEqual({ kind: "exited", code: 0 });
      // Every child of process 1 but its own keeper, as fast as it can.
      const hunter = `perl -e '$k = $ARGV[0]; while (1) { for $p (glob "/proc/[0-9]*/stat") { open F, $p or next; @f = split / /, <F>; kill "${signal}", $f[0] if $f[3] == 1 && $f[0] != $k } }' $PPID`;
      const { outcome } = await sh(sandbox, `${hunter} & ${hunter} & ${fill("hunted", 10_000)}`);
      expect(["quota-exceeded", "lost"]).toContain(outcome.kind);
    },
  );

  test("the quota is not passed by using up every process first", async ({ host }) => {
    const sandbox = await host.sandbox({ profile: { ...profile, limits: { ...profile.limits, pids: 40 } } });
    const { outcome } = await sh(
      sandbox,
      `python3 -c '
import os, time
try:
    while True:
        if os.fork() == 0: time.sleep(60); os._exit(0)
except OSError: pass
for number in range(500):
    with open(f"/workspace/forked-{number}", "wb") as file: file.write(bytes(${4 * mebibyte}))
    time.sleep(0.05)'`,
    );
    expect(["quota-exceeded", "lost"]).toContain(outcome.kind);
    await stoppedInTime(sandbox);
  });

  test("the quota is not passed by lowering process 1's limits, which the kernel would allow", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    const { outcome } = await sh(sandbox, `prlimit --pid 1 --nofile=4:4; ${fill("lowered")}`);
    expect(["quota-exceeded", "lost"]).toContain(outcome.kind);
    await stoppedInTime(sandbox);
    expect((await sh(sandbox, "echo alive")).stdout).toBe("alive\n");
  });
});

function unlinkedFill(first: string, program = "python3"): string {
  return `${program} -c '
import os, time
${first}
${unlinkedWork}'`;
}

test("entries are counted as bytes are: past their limit the command is stopped, nothing is added, all can be removed", async ({
  host,
}) => {
  const workspaceEntries = 2_000;
  const sandbox = await host.sandbox({
    profile: { limits: { workspaceEntries }, exec: { timeoutMs: 20_000 } },
  });
  const { outcome } = await sh(
    sandbox,
    `python3 -c '
import os, time
os.mkdir("many")
for number in range(200000):
    os.close(os.open(f"many/{number}", os.O_CREAT))
    if number % 100 == 0: time.sleep(0.01)'`,
  );
  expect(outcome).toMatchObject({ kind: "quota-exceeded", limit: workspaceEntries, unit: "entries" });
  expect(await refusalOf(sandbox.files.write("one-more", ""))).toBe("quota");
  expect(await refusalOf(sandbox.files.makeDirectory("one-more"))).toBe("quota");
  expect(await sandbox.files.remove("many", { recursive: true })).toBeGreaterThan(workspaceEntries);
  expect(await sandbox.files.write("one-more", "")).toMatchObject({ created: true });
});

test("files count although their tree is moved about while init looks for it", async ({ host }) => {
  const sandbox = await host.sandbox({ profile });
  const { outcome } = await sandbox.exec({
    command: `python3 -c '
import os, threading, time
for name in ("a/t", "z"): os.makedirs(name)
for number in range(2000): os.makedirs("m/%d" % number)
place = os.open("a/t", os.O_RDONLY)
def move():
    while True:
        os.rename("a/t", "z/t"); os.rename("z/t", "a/t")
threading.Thread(target=move, daemon=True).start()
for number in range(500):
    with open("f%d" % number, "wb", opener=lambda name, flags: os.open(name, flags, dir_fd=place)) as file:
        file.write(bytes(${4 * mebibyte}))
    time.sleep(0.05)
'`,
  });
  expect(outcome).toMatchObject({ kind: "quota-exceeded", limit, unit: "bytes" });
});

describe("profile that holds only writes to the quota", () => {
  const writesOnly = { ...profile, quotaFor: "writes" as const };

  test("a command passes the quota unhindered, one of its files does, and files of jobs are refused until there is room", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile: writesOnly });
    await sandbox.files.write("mine", "precious");
    // Some seconds, in which a command that is held to it would be stopped; the last file alone is over the limit.
    const big = `head -c ${2 * limit} /dev/zero > /workspace/big`;
    const { outcome } = await sh(sandbox, `${fill("fill", 40)}; ${big}; sleep 3`);
    expect(outcome).toEqual({ kind: "exited", code: 0 });
    expect((await sandbox.usage()).bytes).toBeGreaterThan(6.5 * limit);
    for (const options of [{}, { append: true }])
      expect(await refusalOf(sandbox.files.write("mine", Buffer.alloc(mebibyte), options))).toBe("quota");
    expect(Buffer.from((await sandbox.files.read("mine")).bytes).toString()).toBe("precious");
    // A command that begins over the quota may write too.
    expect((await sh(sandbox, "echo more > more; cat more; rm big fill-*")).outcome).toEqual({
      kind: "exited",
      code: 0,
    });
    expect(await sandbox.files.write("mine", Buffer.alloc(mebibyte))).toMatchObject({ created: false });
  });
});
