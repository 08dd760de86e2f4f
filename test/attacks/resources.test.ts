import { setTimeout as delay } from "node:timers/promises";
import { type ExecResult, outputText } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../support/host.ts";
import { processes, sh } from "./inside.ts";
import { growthOf } from "./memory.ts";

const mebibyte = 1024 * 1024;
const init = "/.berth/init --workspace /workspace --link /.berth/link";

test("a fork bomb leaves its sandbox answering and its neighbour undisturbed, and is gone after its timeout", async ({
  host,
}) => {
  const sandbox = await host.sandbox({ profile: { limits: { pids: 64 } } });
  const neighbour = await host.sandbox({ key: "globex", profile: { limits: { pids: 64 } } });
  const exploded = Promise.withResolvers<void>();
  const bomb = sandbox.exec(
    {
      argv: ["bash", "-c", "echo go; bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 60"],
      limits: { timeoutMs: 6_000, graceMs: 100 },
    },
    { onOutput: () => exploded.resolve() },
  );
  await exploded.promise;
  await expect.poll(async () => (await sandbox.stats()).processes).toBeGreaterThan(50);
  const besides = await sandbox.exec({ command: "echo besides", limits: { timeoutMs: 2_000 } });
  expect(["exited", "refused", "timed-out"]).toContain(besides.outcome.kind);
  expect(await sh(neighbour, "echo undisturbed")).toMatchObject({ stdout: "undisturbed\n" });
  expect((await bomb).outcome).toEqual({ kind: "timed-out", afterMs: 6_000 });
  await expect
    .poll(async () => (await processes(sandbox)).filter(({ command }) => command !== init), {
      timeout: 30_000,
    })
    .toEqual([]);
  expect(sandbox.origin.restarts).toBe(0);
});

describe("memory", () => {
  const profile = { limits: { memoryBytes: 96 * mebibyte, tmpfsBytes: 64 * mebibyte } };
  const bomb = "python3 -c 'b = bytearray(1 << 30); b[::4096] = b[::4096]'";

  test("memory past its limit ends the command as out of memory, in the command itself and in a child of it", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    const limitBytes = profile.limits.memoryBytes;
    const own = await sandbox.exec({ command: `exec ${bomb}` });
    expect(own.outcome).toEqual({ kind: "out-of-memory", limitBytes });
    const child = await sandbox.exec({ command: `${bomb}; echo the shell lives; exit 3` });
    expect(child.outcome).toEqual({ kind: "out-of-memory", limitBytes });
    expect(outputText(child.output, "stdout")).toBe("the shell lives\n");
    const handled = await sandbox.exec({ command: `${bomb}; exit 0` });
    expect(handled).toMatchObject({ outcome: { kind: "exited", code: 0 }, oomKills: 1 });
    expect(sandbox.origin.restarts).toBe(0);
  });

  test("a SIGKILL that the kernel did not send for memory is not reported as out of memory", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile });
    expect((await sh(sandbox, "kill -KILL $$")).outcome).toEqual({ kind: "signalled", signal: 9 });
    expect((await sh(sandbox, "exit 137")).outcome).toEqual({ kind: "exited", code: 137 });
  });

  test("memory filled by files in tmpfs is bounded as well, and the sandbox comes back", async ({ host }) => {
    const sandbox = await host.sandbox({ profile });
    const fill = await sandbox.exec({
      command: "for d in /tmp /var/tmp /run /dev/shm; do cat /dev/zero > $d/fill; done",
    });
    expect(["out-of-memory", "lost", "exited"]).toContain(fill.outcome.kind);
    expect(fill.outcome).not.toEqual({ kind: "exited", code: 0 });
    await expect
      .poll(
        async () =>
          (await sh(sandbox, "rm -f /tmp/fill /var/tmp/fill /run/fill /dev/shm/fill; echo back")).stdout,
        { timeout: 30_000 },
      )
      .toBe("back\n");
  });
});

describe("private tmpfs", () => {
  test("the private tmpfs hold what they may and no more, in bytes and in files", async ({ host }) => {
    const sandbox = await host.sandbox({
      profile: { limits: { tmpfsBytes: 4 * mebibyte, shmBytes: 4 * mebibyte, tmpfsInodes: 100 } },
    });
    for (const directory of ["/tmp", "/var/tmp", "/run", "/dev/shm"]) {
      const { stdout } = await sh(
        sandbox,
        `cd ${directory}; cat /dev/zero > fill 2>/dev/null; stat -c %s fill; rm fill`,
      );
      expect({ directory, stdout }).toEqual({ directory, stdout: `${4 * mebibyte}\n` });
    }
    for (const directory of ["/tmp", "/var/tmp", "/run"]) {
      const { stdout } = await sh(
        sandbox,
        `cd ${directory}; for n in $(seq 300); do : > $n || break; done 2>/dev/null; ls | wc -l`,
      );
      expect(Number(stdout)).toBeLessThanOrEqual(100);
    }
    expect((await sh(sandbox, "echo still here")).stdout).toBe("still here\n");
  });

  test("the private tmpfs cannot hold files without number in /dev/shm either: they are charged to the sandbox's memory", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({
      profile: { limits: { memoryBytes: 48 * mebibyte }, exec: { timeoutMs: 60_000 } },
    });
    const { outcome, stdout } = await sh(
      sandbox,
      `python3 -c '
import os
for made in range(400000):
    os.close(os.open(f"/dev/shm/{made}", os.O_CREAT))
    if made % 1000 == 0: print(made, flush=True)'`,
    );
    expect(outcome.kind).toBe("out-of-memory");
    expect(Number(stdout.trim().split("\n").at(-1))).toBeGreaterThan(1_000);
    // What it pinned is its own: process 1 goes on, and the next command ends one way or the other.
    expect(["exited", "out-of-memory", "signalled"]).toContain(
      (await sh(sandbox, "echo still here")).outcome.kind,
    );
  }, 90_000);
});

describe("output", () => {
  test("output of a gigabyte passes through a worker that stays small, and its head and tail are kept", async ({
    host,
  }) => {
    const sandbox = await host.sandbox({ profile: { limits: { cpus: 2 }, exec: { timeoutMs: 280_000 } } });
    let seenBytes = 0;
    let result: ExecResult | undefined;
    const growth = await growthOf(async () => {
      result = await sandbox.exec(
        { command: "seq 1000; head -c 1000000000 /dev/zero; seq 1000" },
        {
          onOutput: ({ bytes }) => {
            seenBytes += bytes.length;
          },
        },
      );
    });
    const { outcome, output } = result as ExecResult;
    expect(outcome).toEqual({ kind: "exited", code: 0 });
    expect(output.totalBytes).toBe(1_000_000_000 + 2 * 3_893);
    expect(seenBytes).toBe(output.totalBytes);
    const text = outputText({ ...output, tail: [] }, "stdout");
    expect(text.startsWith("1\n2\n3\n")).toBe(true);
    expect(Buffer.concat(output.tail.map(({ bytes }) => bytes)).toString()).toMatch(/\n999\n1000\n$/);
    const keptBytes = [...output.head, ...output.tail].reduce((sum, { bytes }) => sum + bytes.length, 0);
    expect(keptBytes).toBeLessThanOrEqual(mebibyte);
    expect(output.cutBytes).toBe(output.totalBytes - keptBytes);
    expect(growth.peakMiB).toBeLessThan(200);
    expect(growth.retainedMiB).toBeLessThan(20);
  }, 300_000);

  test("output without end is stopped at its limit", async ({ host }) => {
    const sandbox = await host.sandbox();
    const { outcome, output } = await sandbox.exec({
      command: "yes",
      limits: { outputBytes: 10 * mebibyte },
    });
    expect(outcome).toEqual({ kind: "output-limit", limitBytes: 10 * mebibyte });
    expect(output.totalBytes).toBeLessThan(13 * mebibyte);
  });

  test("output that is not taken holds up neither its neighbours nor its own cancellation", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const cancelling = new AbortController();
    const reached = Promise.withResolvers<void>();
    const unread = sandbox.exec(
      { command: "yes", limits: { graceMs: 100 } },
      {
        signal: cancelling.signal,
        onOutput: () => {
          reached.resolve();
          return new Promise<void>(() => {});
        },
      },
    );
    await reached.promise;
    for (let round = 0; round < 20; round++)
      expect((await sh(sandbox, "seq 100000 | tail -1")).stdout).toBe("100000\n");
    expect(await sandbox.files.write("beside", "written")).toMatchObject({ size: 7 });
    cancelling.abort("enough");
    expect((await unread).outcome).toEqual({ kind: "cancelled", reason: "enough" });
    expect((await processes(sandbox)).filter(({ command }) => command !== init)).toEqual([]);
  });

  test("output of a single byte at a time, alternating between the two streams, is kept within its limit", async ({
    host,
  }) => {
    const sandbox = await host.sandbox();
    const growth = await growthOf(async () => {
      const { outcome, output } = await sandbox.exec({
        argv: ["python3", "-c", "import os\nfor n in range(200000): os.write(1 + n % 2, b'x')"],
      });
      expect(outcome).toEqual({ kind: "exited", code: 0 });
      expect(output.totalBytes).toBe(200_000);
    });
    expect(growth.retainedMiB).toBeLessThan(20);
  });
});

test("stdin that the command never reads is not taken from its source beyond a window, and does not outlive the command", async ({
  host,
}) => {
  const sandbox = await host.sandbox();
  let pulled = 0;
  let closed = false;
  async function* endless(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        pulled += 65_536;
        yield Buffer.alloc(65_536);
        await delay(0);
      }
    } finally {
      closed = true;
    }
  }
  const { outcome } = await sandbox.exec(
    { command: "sleep 60", limits: { timeoutMs: 1_000, graceMs: 100 } },
    { stdin: endless() },
  );
  expect(outcome).toEqual({ kind: "timed-out", afterMs: 1_000 });
  expect(pulled).toBeLessThan(2 * mebibyte);
  await expect.poll(() => closed).toBe(true);
});

test("open files end at their limit, for the process that opens them only", async ({ host }) => {
  const sandbox = await host.sandbox({ profile: { limits: { openFiles: 512 } } });
  const { stdout } = await sh(
    sandbox,
    `python3 -c '
import os, resource
held = []
try:
    while True: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error: print(error.strerror, len(held) < 512)
try: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
except ValueError as error: print("not raised")'; ls /proc/self/fd | wc -l`,
  );
  expect(stdout).toBe("Too many open files True\nnot raised\n4\n");
  await Promise.all(
    Array.from({ length: 40 }, async () => expect((await sh(sandbox, "echo ok")).stdout).toBe("ok\n")),
  );
});

test("more commands at once than init takes are refused as busy, not lost, and those within go on", async ({
  host,
}) => {
  const sandbox = await host.sandbox();
  const all = await Promise.all(
    Array.from({ length: 100 }, () => sandbox.exec({ command: "sleep 1; echo done" })),
  );
  const kinds = all.map(({ outcome }) => (outcome.kind === "refused" ? outcome.code : outcome.kind));
  expect(new Set(kinds)).toEqual(new Set(["exited", "busy"]));
  expect(kinds.filter((kind) => kind === "exited").length).toBeGreaterThan(30);
  expect((await sh(sandbox, "echo alive")).stdout).toBe("alive\n");
});
