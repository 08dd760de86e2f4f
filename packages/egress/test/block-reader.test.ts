import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Writable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { BlockReader } from "../src/block-reader.ts";

const sent = randomBytes(8_000_000);
const hashOf = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

/** A server that does that with each connection. */
async function serverThat(serves: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => serves(socket.on("error", () => {})));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Takes each chunk only some turns of the loop later, so that blocks wait. */
class SlowSink extends Writable {
  readonly #parts: Buffer[] = [];
  readonly #turns: number;

  constructor(turns: number) {
    super({ highWaterMark: 1 });
    this.#turns = turns;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    const take = async () => {
      for (let turn = 0; turn < this.#turns; turn++) await setImmediate();
      // Copied only now: a block that was read into meanwhile would show.
      this.#parts.push(Buffer.from(chunk));
      done();
    };
    void take();
  }
}

async function reading(port: number, sink: Writable, book: (bytes: number) => number | undefined) {
  const reader = new BlockReader();
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true, onread: reader.onread });
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  // What the server sends first may be here before it is pumped.
  for (let turn = 0; turn < 20; turn++) await setImmediate();
  reader.pump(socket, sink, book);
  return socket;
}

test.for([0, 1, 7])(
  "every byte comes once and in order to a sink that takes %i turns for each",
  async (turns) => {
    const port = await serverThat((socket) => {
      for (let at = 0; at < sent.length; ) {
        const size = 1 + ((at * 7919) % 90_000);
        socket.write(sent.subarray(at, at + size));
        at += size;
      }
      socket.end();
    });
    const sink = new SlowSink(turns);
    await reading(port, sink, () => 0);
    await once(sink, "finish");
    expect(hashOf(sink.bytes)).toBe(hashOf(sent));
  },
);

test("a pace holds it back, a breach ends both sides, and a reset is not taken for an end", async () => {
  const port = await serverThat((socket) => socket.end(sent.subarray(0, 300_000)));
  const paced = new SlowSink(0);
  await reading(port, paced, () => 1);
  await once(paced, "finish");
  expect(hashOf(paced.bytes)).toBe(hashOf(sent.subarray(0, 300_000)));

  const breached = new SlowSink(0);
  let left = 100_000;
  const socket = await reading(port, breached, (bytes) => {
    left -= bytes;
    return left > 0 ? 0 : undefined;
  });
  await once(breached, "close");
  expect(socket.destroyed).toBe(true);
  expect(breached.bytes.length).toBeLessThan(300_000);

  const served: Socket[] = [];
  const cut = await serverThat((one) => {
    served.push(one);
    one.write(sent.subarray(0, 1_000));
  });
  const sink = new SlowSink(0);
  await reading(cut, sink, () => 0);
  await expect.poll(() => sink.bytes.length).toBe(1_000);
  served[0]?.resetAndDestroy();
  if (!sink.closed) await once(sink, "close");
  expect(sink.writableFinished).toBe(false);
});

test("only so many bytes are passed on as were announced, and an end before the last of them is none", async () => {
  const port = await serverThat((socket) => socket.write(sent.subarray(0, 500_000)));
  for (const length of [1, 131_072, 499_999, 500_000]) {
    const reader = new BlockReader();
    const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true, onread: reader.onread });
    onTestFinished(() => void socket.destroy());
    const sink = new SlowSink(1);
    const finished = once(sink, "finish");
    const first: Buffer[] = [];
    // What was read before it is passed on counts.
    const early = new Promise<void>((resolve) =>
      reader.take(socket, (bytes) => {
        first.push(bytes);
        resolve();
        return false;
      }),
    );
    await early;
    reader.pump(socket, sink, () => 0, { first: Buffer.concat(first), length });
    await finished;
    expect(hashOf(sink.bytes)).toBe(hashOf(sent.subarray(0, length)));
    if (!socket.closed) await once(socket, "close");
  }
  const short = await serverThat((socket) => socket.end(sent.subarray(0, 1_000)));
  const reader = new BlockReader();
  const socket = connect({ host: "127.0.0.1", port: short, allowHalfOpen: true, onread: reader.onread });
  const sink = new SlowSink(0);
  reader.pump(socket, sink, () => 0, { length: 1_001 });
  await once(sink, "close");
  expect(sink.writableFinished).toBe(false);
});
