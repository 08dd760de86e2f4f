import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { Init, isRoot } from "./support/init-process.ts";
import { frame, MAX_FRAME, Records, record, records, Type } from "./support/wire.ts";

const hello = (nonce: Buffer) => records([1, nonce], [2, 60_000]);

describe("frames", () => {
  test("a HELLO is answered with its nonce, who init is, and nothing running", async () => {
    const init = new Init();
    const ack = await init.hello();
    expect(ack.number(2)).toBe(0);
    expect(ack.all(3)).toEqual([]);
    expect(ack.text(4)).toMatch(/^[0-9a-f]{12}$/);
    expect(ack.number(5)).toBe(process.getuid?.());
    expect([0, 1, 2]).toContain(ack.number(6));
    expect(ack.number(7)).toBe(isRoot ? 1 : init.process.pid);
  });

  test("a PING comes back byte for byte", async () => {
    const init = await Init.start();
    expect(await init.ping("x".repeat(64))).toBe("x".repeat(64));
    expect(await init.ping("")).toBe("");
  });

  test("a PING of more than 64 bytes is a bad request", async () => {
    const init = await Init.start();
    init.send(Type.PING, 0, Buffer.alloc(65));
    const fail = await init.nextControl((found) => found.type === Type.FAIL);
    expect(new Records(fail.payload).text(1)).toBe("bad-request");
  });

  test("before the first HELLO init ignores every other frame", async () => {
    const init = new Init();
    init.send(Type.PING, 0, Buffer.from("early"));
    init.send(Type.STATS, 7);
    await init.hello();
    await init.ping("after");
    expect(init.control).toEqual([]);
  });

  test.each([1, 3, 19, 20, 21, 30, 59])(
    "after %i bytes of a frame that never ends, an attach is heard",
    async (bytes) => {
      const init = await Init.start();
      init.sendRaw(frame(Type.PING, 0, 1n, Buffer.alloc(40, 1)).subarray(0, bytes));
      await init.hello();
      expect(await init.ping("again")).toBe("again");
    },
  );

  test("half of the largest frame does not swallow the attach behind it", async () => {
    const init = await Init.start();
    init.sendRaw(frame(Type.STDIN, 1, 1n, Buffer.alloc(65_536, 0xbe)).subarray(0, 32_000));
    await init.hello();
    expect(await init.ping("again")).toBe("again");
  });

  test("a frame with a wrong trailer is dropped whole, and the next one is heard", async () => {
    const init = await Init.start();
    const inner = frame(Type.PING, 0, 1n, Buffer.from("inner"));
    const bad = frame(Type.PING, 0, 1n, inner);
    bad[bad.length - 1] = 0x77;
    init.sendRaw(bad);
    await init.ping("next");
    expect(init.control).toEqual([]);
  });

  test("garbage, wrong versions and impossible lengths are skipped up to the next good header", async () => {
    const init = await Init.start();
    const version = frame(Type.PING, 0, 1n, Buffer.from("v"));
    version[2] = 9;
    const length = frame(Type.PING, 0, 1n, Buffer.from("l"));
    length.writeUInt32BE(65_537, 16);
    init.sendRaw(
      Buffer.concat([
        Buffer.alloc(1000, 0xbe),
        version,
        randomBytes(5000),
        length,
        Buffer.from([0xbe, 0x27]),
      ]),
    );
    init.sendRaw(Buffer.alloc(MAX_FRAME));
    expect(await init.ping("found")).toBe("found");
  });

  test("a frame that comes one byte at a time is heard", async () => {
    const init = await Init.start();
    for (const byte of frame(Type.PING, 0, 1n, Buffer.from("slow"))) {
      init.sendRaw(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await init.nextControl((found) => found.type === Type.PONG && found.payload.toString() === "slow");
    expect(init.control).toEqual([]);
  });

  test("frames of an unknown type are ignored", async () => {
    const init = await Init.start();
    init.send(0x3f, 5, Buffer.from("?"));
    await init.ping();
    expect(init.control).toEqual([]);
  });

  test.each([
    ["no nonce", records([2, 1000])],
    ["a short nonce", records([1, Buffer.alloc(15)], [2, 1000])],
    ["a lease that is no number", records([1, Buffer.alloc(16)], [2, "1000"])],
    [
      "a record that runs past the payload",
      Buffer.concat([hello(Buffer.alloc(16)), Buffer.from([9, 0, 0, 0, 9, 1])]),
    ],
  ])("a HELLO with %s is a bad request and changes nothing", async (_, payload) => {
    const init = await Init.start();
    init.send(Type.HELLO, 0, payload, 50n);
    const fail = await init.nextControl((found) => found.type === Type.FAIL);
    expect(new Records(fail.payload).text(1)).toBe("bad-request");
    expect(fail.epoch).toBe(1n);
    expect(await init.ping("still")).toBe("still");
  });
});

describe("epochs", () => {
  test("a HELLO with a lower epoch is answered by FENCED with the highest", async () => {
    const init = new Init();
    await init.hello(60_000, 7n);
    init.send(Type.HELLO, 0, hello(randomBytes(16)), 6n);
    const fenced = await init.nextControl((found) => found.type === Type.FENCED);
    expect(new Records(fenced.payload).number(1)).toBe(7);
    expect(fenced.epoch).toBe(7n);
  });

  test("frames of a lower epoch are ignored", async () => {
    const init = new Init();
    await init.hello(60_000, 7n);
    init.send(Type.PING, 0, Buffer.from("old"), 6n);
    init.send(Type.EXEC, 5, init.execPayload(["true"]), 6n);
    await init.ping("new");
    expect(init.control).toEqual([]);
  });

  test("init does not obey frames of a higher epoch before its HELLO", async () => {
    const init = new Init();
    await init.hello(60_000, 7n);
    init.send(Type.PING, 0, Buffer.from("stranger"), 8n);
    const pong = await init.ping("mine");
    expect(pong).toBe("mine");
    expect(init.control).toEqual([]);
  });

  test("every frame from init carries the highest epoch", async () => {
    const init = new Init();
    await init.hello(60_000, 3n);
    const before = init.sh("echo one");
    await before.exit();
    expect(new Set(before.frames.map((found) => found.epoch))).toEqual(new Set([3n]));
    await init.hello(60_000, 9n);
    const after = init.sh("echo two");
    await after.exit();
    expect(new Set(after.frames.map((found) => found.epoch))).toEqual(new Set([9n]));
  });
});

describe("requests in parts", () => {
  test("an EXEC larger than a frame arrives whole", async () => {
    const init = await Init.start();
    const big = "y".repeat(100_000);
    const payload = init.execPayload(["sh", "-c", 'printf %s "$1$2$3" | wc -c', "sh", big, big, big]);
    const channel = init.channel();
    let at = 0;
    for (; payload.length - at > 65_536; at += 65_536)
      init.send(Type.PART, channel.number, payload.subarray(at, at + 65_536));
    init.send(Type.EXEC, channel.number, payload.subarray(at));
    expect((await channel.exit()).value).toBe(0);
    expect(channel.stdout.trim()).toBe("300000");
  });

  test("parts cut anywhere, even inside a record's header, come together", async () => {
    const init = await Init.start();
    const payload = init.execPayload(["echo", "joined"]);
    const channel = init.channel();
    for (const byte of payload.subarray(0, payload.length - 1))
      init.send(Type.PART, channel.number, Buffer.from([byte]));
    init.send(Type.EXEC, channel.number, payload.subarray(payload.length - 1));
    expect((await channel.exit()).value).toBe(0);
    expect(channel.stdout).toBe("joined\n");
  });

  test("more than 2 MiB of parts is a bad request, and the channel is free again", async () => {
    const init = await Init.start();
    const channel = init.channel();
    for (let i = 0; i < 33; i++) init.send(Type.PART, channel.number, Buffer.alloc(65_536, 1));
    init.send(Type.EXEC, channel.number, init.execPayload(["true"]));
    expect(await channel.failCode()).toBe("bad-request");
    const again = init.channel(channel.number);
    init.send(Type.EXEC, again.number, init.execPayload(["true"]));
    expect((await again.exit()).value).toBe(0);
  });

  test("parts of two channels at a time spoil both, and never run half a request", async () => {
    const init = await Init.start();
    const [a, b] = [init.channel(), init.channel()];
    init.send(Type.PART, a.number, record(1, "touch"));
    init.send(Type.PART, b.number, record(1, "touch"));
    init.send(Type.EXEC, a.number, init.execPayload(["true"]));
    init.send(Type.EXEC, b.number, init.execPayload(["true"]));
    expect(await a.failCode()).toBe("bad-request");
    expect(await b.failCode()).toBe("bad-request");
  });

  test("a request on another channel passes between a request's parts", async () => {
    const init = await Init.start();
    const [slow, quick] = [init.channel(), init.channel()];
    const payload = init.execPayload(["echo", "slow"]);
    init.send(Type.PART, slow.number, payload.subarray(0, 20));
    init.send(Type.EXEC, quick.number, init.execPayload(["echo", "quick"]));
    expect((await quick.exit()).value).toBe(0);
    init.send(Type.EXEC, slow.number, payload.subarray(20));
    expect((await slow.exit()).value).toBe(0);
    expect([slow.stdout, quick.stdout]).toEqual(["slow\n", "quick\n"]);
  });

  test("a HELLO forgets the parts of the worker before", async () => {
    const init = await Init.start();
    init.send(Type.PART, 5, record(1, "echo"));
    await init.hello();
    const channel = init.channel(5);
    init.send(Type.EXEC, 5, init.execPayload(["echo", "own"]));
    await channel.exit();
    expect(channel.stdout).toBe("own\n");
  });
});

describe("malformed requests", () => {
  test.each([
    ["no argument", records([4, 0])],
    ["an argument with NUL", records([1, "a\0b"])],
    ["an environment entry without a name", records([1, "true"], [2, "=x"])],
    ["an environment entry without =", records([1, "true"], [2, "x"])],
    ["a number of four bytes", records([1, "true"], [5, Buffer.alloc(4)])],
    ["the same number twice", records([1, "true"], [5, 1], [5, 1])],
    ["a record past the end", Buffer.concat([record(1, "true"), Buffer.from([1, 0, 0, 0, 2, 0x61])])],
    ["a header cut short", Buffer.concat([record(1, "true"), Buffer.from([1, 0])])],
  ])("an EXEC with %s is a bad request", async (_, payload) => {
    const init = await Init.start();
    const channel = init.channel();
    init.send(Type.EXEC, channel.number, payload);
    expect(await channel.failCode()).toBe("bad-request");
  });

  test.each([
    ["no operation", records([2, "a"])],
    ["an unknown operation", records([1, 99], [2, "a"])],
    ["a read of nothing", records([1, 1])],
    ["a write without size", records([1, 2], [2, "a"])],
    ["a move to nowhere", records([1, 6], [2, "a"])],
    ["a glob without pattern", records([1, 8], [2, ""])],
    ["a grep for two patterns", records([1, 9], [2, ""], [11, "a"], [11, "b"])],
    ["a sha256 of 31 bytes", records([1, 2], [2, "a"], [8, 0], [9, Buffer.alloc(31)])],
  ])("a FILE with %s is a bad request", async (_, payload) => {
    const init = await Init.start();
    const channel = init.channel();
    init.send(Type.FILE, channel.number, payload);
    expect(await channel.failCode()).toBe("bad-request");
  });

  test("unknown tags are ignored", async () => {
    const init = await Init.start();
    const channel = init.channel();
    init.send(
      Type.EXEC,
      channel.number,
      Buffer.concat([record(200, "?"), init.execPayload(["true"]), record(99, "")]),
    );
    expect((await channel.exit()).value).toBe(0);
  });

  test("a request on channel 0 is a bad request", async () => {
    const init = await Init.start();
    init.send(Type.EXEC, 0, init.execPayload(["true"]));
    const fail = await init.nextControl((found) => found.type === Type.FAIL);
    expect(new Records(fail.payload).text(1)).toBe("bad-request");
  });

  test("a broken CREDIT for a running command ends it, and FAIL is the channel's last frame", async () => {
    const init = await Init.start();
    const channel = init.sh("sleep 100");
    await channel.started();
    init.send(Type.CREDIT, channel.number, records([1, "many"]));
    expect(await channel.failCode()).toBe("bad-request");
    expect(init.marked()).toEqual([]);
  });

  test("frames for a channel that is over are ignored", async () => {
    const init = await Init.start();
    const channel = init.sh("true");
    await channel.exit();
    channel.stdin("late");
    channel.stdinEof();
    channel.credit(5);
    channel.kill();
    expect(await init.ping()).toBe("ping");
  });
});
