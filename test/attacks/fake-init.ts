import {
  encodeFrame,
  FrameType,
  HelloAckTag,
  HelloTag,
  headerBytes,
  Records,
  RecordWriter,
  trailerBytes,
} from "@berth/init";
import type { ByteListener, ByteStream } from "../../packages/sandbox/src/init/byte-stream.ts";

export interface Said {
  readonly type: number;
  readonly channel: number;
  readonly payload: Buffer;
}

/** What a fake init does with a frame of the worker's; by default it is honest about HELLO and PING, and silent otherwise. */
export type Answer = (frame: Said, init: FakeInit) => void;

/** An init in the worker's own memory, which sends any frames that a test wants. They arrive asynchronously, as from a socket. */
export class FakeInit implements ByteStream {
  readonly epoch: number;
  nonce: Buffer = Buffer.alloc(0);
  readonly #answer: Answer;
  #listener: ByteListener | undefined;
  #ended = false;

  constructor(answer: Answer = honest, epoch = 1) {
    this.#answer = answer;
    this.epoch = epoch;
  }

  get ended(): boolean {
    return this.#ended;
  }

  listen(listener: ByteListener): void {
    this.#listener = listener;
  }

  send(bytes: Uint8Array): boolean {
    const all = Buffer.from(bytes);
    for (let at = 0; all.length - at >= headerBytes; ) {
      const length = all.readUInt32BE(at + 16);
      const frame = {
        type: all.readUInt8(at + 3),
        channel: all.readUInt32BE(at + 4),
        payload: all.subarray(at + headerBytes, at + headerBytes + length),
      };
      if (frame.type === FrameType.hello) {
        this.nonce = Buffer.from(new Records(frame.payload).bytes(HelloTag.nonce) ?? []);
      }
      setImmediate(() => this.#answer(frame, this));
      at += headerBytes + length + trailerBytes;
    }
    return true;
  }

  destroy(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#listener?.onEnd("destroyed");
  }

  raw(bytes: Buffer): void {
    if (!this.#ended) this.#listener?.onBytes(bytes);
  }

  say(
    type: number,
    channel: number,
    payload: Uint8Array = Buffer.alloc(0),
    epoch: number = this.epoch,
  ): void {
    this.raw(encodeFrame(type, channel, epoch, payload));
  }

  acknowledge(more: (records: RecordWriter) => RecordWriter = (records) => records): void {
    const records = new RecordWriter()
      .add(HelloAckTag.nonce, this.nonce)
      .add(HelloAckTag.watchdogFired, 0)
      .add(HelloAckTag.filtered, 1);
    this.say(FrameType.helloAck, 0, more(records).finish());
  }
}

export function honest(frame: Said, init: FakeInit): void {
  if (frame.type === FrameType.hello) init.acknowledge();
  if (frame.type === FrameType.ping) init.say(FrameType.pong, 0, frame.payload);
}

/** Honest until the first EXEC, FILE or STATS, and then this. */
export function turning(attack: (init: FakeInit, frame: Said) => void): Answer {
  const requests: number[] = [FrameType.exec, FrameType.file, FrameType.stats];
  return (frame, init) => {
    honest(frame, init);
    if (requests.includes(frame.type)) attack(init, frame);
  };
}
