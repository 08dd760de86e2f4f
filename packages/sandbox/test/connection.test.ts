import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  encodeFrame,
  FrameDecoder,
  FrameType,
  HelloAckTag,
  HelloTag,
  Records,
  RecordWriter,
} from "@berth/init";
import { expect, onTestFinished, test, vi } from "vitest";
import type { ByteListener, ByteStream } from "../src/init/byte-stream.ts";
import { InitConnection } from "../src/init/connection.ts";
import { LinkListener } from "../src/init/link-listener.ts";

const epoch = 7;

/** The stdio of an init that answers HELLO and ends before it answers LINK. */
class DyingInit implements ByteStream {
  readonly #decoder = new FrameDecoder();
  #listener: ByteListener | undefined;

  listen(listener: ByteListener): void {
    this.#listener = listener;
  }

  send(bytes: Uint8Array): boolean {
    this.#decoder.push(Buffer.from(bytes), ({ type, payload }) => {
      if (type !== FrameType.hello) return;
      const nonce = new Records(payload).bytes(HelloTag.nonce);
      const ack = new RecordWriter()
        .add(HelloAckTag.nonce, nonce)
        .add(HelloAckTag.filtered, 1)
        .add(HelloAckTag.links, 1);
      setImmediate(() => {
        this.#listener?.onBytes(encodeFrame(FrameType.helloAck, 0, epoch, ack.finish()));
        // By then the connection waits for init to connect.
        setImmediate(() => this.#listener?.onEnd("the container ended"));
      });
    });
    return true;
  }

  destroy(): void {}
}

test("a connection whose container ends between HELLO_ACK and the unix link does not open, and leaves no timer", async () => {
  const directory = await mkdtemp(join(tmpdir(), "berth-connection-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  await using listener = await LinkListener.open({ directory, owner: undefined }, epoch);
  const set = vi.spyOn(globalThis, "setInterval");
  const cleared = vi.spyOn(globalThis, "clearInterval");
  onTestFinished(() => {
    vi.restoreAllMocks();
  });
  const connection = new InitConnection(new DyingInit(), {
    ...{ sandboxKey: "acme", epoch, leaseMs: 60_000, deadlineMs: 60_000, resync: false, listener },
  });
  const opened = await connection.open().catch((error: unknown) => error);
  const left = set.mock.results.filter(({ value }) => !cleared.mock.calls.some(([timer]) => timer === value));
  expect(left).toEqual([]);
  expect(opened).toMatchObject({ code: "sandbox-start-failed" });
});
