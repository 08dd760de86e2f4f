import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isFault } from "@berth/protocol";
import type { DockerDriver, DockerDriverOptions } from "@berth/sandbox";
import { describe, expect } from "vitest";
import { startRequest, type TestHost, test } from "../support/host.ts";
import { shown } from "../support/shown.ts";
import { growthOf } from "./memory.ts";

/** Enough of the protocol to lie in it. `attack(frame)` sees every frame after the hello; PING is answered before, and so is the measuring of the workspace. */
const fakeInit = (attack: string) => `#!/usr/bin/python3
import os, struct, sys, time
EPOCH = 1
HELLO, PING, EXEC, CREDIT, KILL, FILE, STATS = 1, 2, 4, 7, 8, 9, 10
ACK, PONG, STARTED, STDOUT, EXIT, DATA, ITEMS, DONE, FENCED = 0x41, 0x42, 0x43, 0x44, 0x46, 0x49, 0x4a, 0x4b, 0x4c
def frame(kind, channel, payload=b"", epoch=None, length=None):
    size = len(payload) if length is None else length
    head = struct.pack(">HBBIQI", 0xBE27, 1, kind, channel, EPOCH if epoch is None else epoch, size)
    return head + payload + struct.pack(">I", 0xE0D50000 ^ size)
def record(tag, value):
    value = struct.pack(">Q", value) if isinstance(value, int) else value
    return struct.pack(">BI", tag, len(value)) + value
def write(data):
    while data:
        data = data[os.write(1, data):]
def say(*args, **named):
    write(frame(*args, **named))
def exactly(count):
    data = b""
    while len(data) < count:
        more = os.read(0, count - len(data))
        if not more: time.sleep(3600)
        data += more
    return data
class Frame: pass
def take():
    head = exactly(20)
    one = Frame()
    _, _, one.kind, one.channel, one.epoch, length = struct.unpack(">HBBIQI", head)
    one.payload = exactly(length)
    exactly(4)
    return one
def ack(hello, more=b"", filtered=1):
    say(ACK, 0, record(1, hello.payload[5:21]) + record(2, 0) + record(8, filtered) + more)
def exited(channel, code=0):
    say(EXIT, channel, record(1, 1) + record(2, code) + record(3, 0))
def measured(one):
    say(DONE, one.channel, record(2, 0) + record(14, 0))
def serve(on_frame):
    while True:
        one = take()
        if one.kind == PING: say(PONG, 0, one.payload)
        elif one.kind == FILE: measured(one)
        else: on_frame(one)
${attack}
`;

async function driverOf(
  host: TestHost,
  attack: string,
  options: Partial<DockerDriverOptions> = {},
): Promise<DockerDriver> {
  const initPath = join(host.workspacesRoot, "hostile-init");
  await writeFile(initPath, fakeInit(attack));
  await chmod(initPath, 0o755);
  return host.driver({ initPath, helloDeadlineMs: 3_000, fileDeadlineMs: 2_000, ...options });
}

/** Starts, expects the start to fail, and gives the fault. */
async function startFailure(driver: DockerDriver): Promise<unknown> {
  return driver.start(startRequest()).then(
    async (sandbox) => {
      await sandbox.stop();
      return "started";
    },
    (error: unknown) => error,
  );
}

async function containersGone(driver: DockerDriver): Promise<void> {
  await expect.poll(() => driver.list(), { timeout: 30_000 }).toEqual([]);
}

describe("a process 1 that lies from the start", () => {
  const starts: Record<string, { attack: string; code: string }> = {
    "says nothing": { attack: "time.sleep(3600)", code: "init-unresponsive" },
    "sends noise without end": { attack: "while True: write(os.urandom(65536))", code: "init-unresponsive" },
    "answers the hello with another nonce": {
      attack: "hello = take(); say(ACK, 0, record(1, bytes(16)) + record(2, 0)); time.sleep(3600)",
      code: "init-unresponsive",
    },
    "answers the hello in an epoch that is over": {
      attack: "hello = take(); EPOCH = 0; ack(hello); time.sleep(3600)",
      code: "init-unresponsive",
    },
    "writes to stderr without end": {
      attack: "while True: os.write(2, b'x' * 65536)",
      code: "init-unresponsive",
    },
    "answers with a frame of 4 GiB": {
      attack:
        "hello = take(); write(frame(ACK, 0, record(1, hello.payload[5:21]), length=2**32 - 1)); time.sleep(3600)",
      code: "init-protocol",
    },
    "claims that a later holder exists": {
      attack: "hello = take(); EPOCH = 99; ack(hello); time.sleep(3600)",
      code: "fenced",
    },
    "says that its seccomp filter is not on": {
      attack: "hello = take(); ack(hello, filtered=0); time.sleep(3600)",
      code: "sandbox-start-failed",
    },
    "dies of the hello": { attack: "take(); sys.exit(3)", code: "sandbox-start-failed" },
  };

  test.for(Object.keys(starts))(
    "a process 1 that lies: %s: the start fails, the worker stays small, no container is left",
    async (what, { host }) => {
      const { attack, code } = starts[what] as { attack: string; code: string };
      const helloDeadlineMs = code === "init-unresponsive" ? 1_000 : 5_000;
      const driver = await driverOf(host, attack, { helloDeadlineMs });
      let failure: unknown;
      const growth = await growthOf(async () => {
        failure = await startFailure(driver);
      });
      expect(isFault(failure) ? failure.code : failure).toBe(code);
      expect(growth.peakMiB).toBeLessThan(200);
      expect(growth.retainedMiB).toBeLessThan(30);
      expect(await driver.list()).toEqual([]);
    },
  );
});

test("a process 1 without its seccomp filter is refused", async ({ host }) => {
  const driver = await driverOf(host, "hello = take(); ack(hello, filtered=0); time.sleep(3600)");
  await expect(driver.start(startRequest())).rejects.toThrow("without its seccomp filter");
  expect(await driver.list()).toEqual([]);
});

describe("a process 1 that turns on a command", () => {
  const turns: Record<string, string> = {
    "sends noise without end": "while True: write(os.urandom(65536))",
    "sends output beyond its credit without end": "while True: say(STDOUT, one.channel, b'x' * 65536)",
    "sends empty output without end": "while True: say(STDOUT, one.channel)",
    "answers pings that were never sent, without end": "while True: say(PONG, 0)",
    "greets again and again": "while True: say(ACK, 0, hello_ack)",
    "answers for channels never opened": "while True: exited(4711)",
    "announces a frame of 4 GiB and sends it":
      "write(frame(STDOUT, one.channel, length=2**32 - 1))\n    while True: write(bytes(65536))",
    "ends the command twice": "exited(one.channel); exited(one.channel)",
  };

  test.for(Object.keys(turns))(
    "a process 1 that turns on a command: %s: the command is lost, the container is removed",
    async (what, { host }) => {
      const driver = await driverOf(
        host,
        `hello = take(); ack(hello); hello_ack = record(1, hello.payload[5:21])
def turn(one):
    if one.kind != EXEC: return
    ${turns[what]}
serve(turn)`,
      );
      const sandbox = await host.sandbox({}, driver);
      const growth = await growthOf(async () => {
        // Never taking what comes is what makes a window overflow.
        const stuck = new Promise<void>(() => {});
        const result = await sandbox.exec({ command: "true" }, { onOutput: () => stuck });
        const { outcome } = shown(result);
        // The first of two ends is an end like any other; the second costs only the container.
        if (what === "ends the command twice") expect(outcome).toEqual({ kind: "exited", code: 0 });
        else
          expect(outcome).toMatchObject({
            kind: "lost",
            message: expect.stringContaining("broke the protocol"),
          });
      });
      expect(growth.peakMiB).toBeLessThan(200);
      expect(growth.retainedMiB).toBeLessThan(30);
      await containersGone(driver);
    },
  );
});

test("output without end within its credit is kept to its limit and stopped at the output limit", async ({
  host,
}) => {
  const driver = await driverOf(
    host,
    `hello = take(); ack(hello)
def turn(one):
    if one.kind == EXEC:
        write(frame(STDOUT, one.channel, b'x' * 1024) * 1024)
    if one.kind == CREDIT: write(frame(STDOUT, one.channel, b'x' * 1024) * (struct.unpack('>Q', one.payload[5:])[0] // 1024))
    if one.kind == KILL: say(EXIT, one.channel, record(1, 2) + record(2, 9) + record(3, 2))
serve(turn)`,
  );
  const sandbox = await host.sandbox({}, driver);
  const limits = { outputBytes: 200 * 1024 * 1024 };
  const growth = await growthOf(async () => {
    const result = await sandbox.exec({ command: "true", limits });
    expect(result.outcome).toEqual({ kind: "output-limit", limitBytes: limits.outputBytes });
    expect(result.output.totalBytes).toBeGreaterThan(limits.outputBytes);
  });
  expect(growth.peakMiB).toBeLessThan(200);
});

test("an init that answers pings but no request is given up at the request's deadline, and its container removed", async ({
  host,
}) => {
  const driver = await driverOf(host, "FILE = None; ack(take()); serve(lambda one: None)");
  const sandbox = await host.sandbox({}, driver);
  const outcomes = await Promise.allSettled([sandbox.files.list(""), sandbox.stats()]);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await containersGone(driver);
});

test("an init that stops answering pings is given up within two leases, and the command is lost", async ({
  host,
}) => {
  const driver = await driverOf(host, "ack(take()); time.sleep(3600)");
  const sandbox = await host.sandbox({ leaseMs: 900 }, driver);
  const { outcome } = await sandbox.exec({ command: "true" });
  expect(outcome).toMatchObject({ kind: "lost", message: expect.stringContaining("did not answer") });
  await containersGone(driver);
});

test("a survivor that claims commands it never ends is not adopted but replaced", async ({ host }) => {
  const leftovers = "b''.join(record(3, struct.pack('>II', n, n)) for n in range(1, 50))";
  const driver = await driverOf(
    host,
    `ack(take())\nwhile True:\n    one = take()\n    EPOCH = one.epoch\n    if one.kind == HELLO: ack(one, ${leftovers})\n    if one.kind == PING: say(PONG, 0, one.payload)`,
  );
  const request = startRequest();
  const first = await driver.start(request);
  first.detach();
  const [before] = await driver.list();
  const second = await host.sandbox({}, driver);
  const [after] = await driver.list();
  expect(second.origin.how).toBe("started");
  expect(after?.id).not.toBe(before?.id);
});

test("a process 1 that falsely claims a higher epoch cannot keep its sandbox from being started again", async ({
  host,
}) => {
  const driver = await driverOf(
    host,
    "ack(take())\nwhile True:\n    one = take()\n    if one.kind == FILE: measured(one)\n    if one.kind == EXEC: say(FENCED, 0, record(1, 2**50))",
  );
  const sandbox = await driver.start(startRequest());
  await expect(sandbox.exec({ command: "true" })).rejects.toMatchObject({ code: "fenced" });
  await sandbox.stop();
  const again = await host.driver().start(startRequest({ epoch: 2 }));
  try {
    expect(shown(await again.exec({ command: "echo alive" })).stdout).toBe("alive\n");
  } finally {
    await again.stop();
  }
});

/** Honest until it is parked; then `adopted` says what it does. */
function program(adopted: string): string {
  return `first = take()
EPOCH = first.epoch
ack(first)
while True:
    one = take()
    if one.kind == 0x0E:
        say(DONE, one.channel, b'')
        break
    if one.kind == FILE: measured(one)
    if one.kind == PING: say(PONG, 0, one.payload)
while True:
    one = take()
    EPOCH = one.epoch
    ${adopted}`;
}

describe("process 1 that was taken over before it was parked", () => {
  const lies = {
    "claims a later epoch": "say(FENCED, 0, record(1, 2**50))",
    "claims commands that it never ends":
      "ack(one, b''.join(record(3, struct.pack('>II', n, n)) for n in range(1, 9))) if one.kind == HELLO else None",
    "answers another worker's hello": "say(HELLO_ACK, 0, record(1, b'x' * 16))",
    "says nothing": "pass",
  };
  test.for(Object.entries(lies))(
    "a process 1 that was taken over before it was parked and %s, is removed, and the sandbox starts afresh",
    async ([, lie], { host }) => {
      const driver = await driverOf(host, program(lie), { helloDeadlineMs: 1_500 });
      const first = await driver.start(startRequest());
      expect(await first.park()).toBe(true);
      const [before] = await driver.list();
      const isHeld = async () => true;
      const next = await driver.start({ ...startRequest({ epoch: 2 }), isHeld });
      expect(next.origin.how).toBe("started");
      expect((await driver.list()).map(({ id }) => id)).not.toContain(before?.id);
      await next.stop();
    },
  );
});
