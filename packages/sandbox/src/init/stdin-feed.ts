import { FrameError, FrameType, maxPayloadBytes, stdinWindowBytes } from "@berth/init";
import type { ChannelWire } from "./channel.ts";

/**
 * Sends bytes to a command's stdin, or to a file being written, no faster than init takes them. Ends by itself when
 * the source ends or the channel does.
 */
export class StdinFeed {
  readonly #wire: ChannelWire;
  readonly #channel: number;
  #credit = stdinWindowBytes;
  #unacknowledged = 0;
  #wake: (() => void) | undefined;
  #stopped = false;

  constructor(wire: ChannelWire, channel: number) {
    this.#wire = wire;
    this.#channel = channel;
  }

  /** Rejects only with what the source threw. */
  async send(source: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    if (source instanceof Uint8Array) await this.#sendChunk(source);
    else {
      for await (const chunk of source) {
        await this.#sendChunk(chunk);
        if (this.#stopped) return;
      }
    }
    if (!this.#stopped) this.#wire.send(FrameType.stdinEof, this.#channel, Buffer.alloc(0));
  }

  async #sendChunk(chunk: Uint8Array): Promise<void> {
    for (let offset = 0; offset < chunk.length; ) {
      if (this.#credit === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
      await this.#wire.writable();
      if (this.#stopped) return;
      const part = chunk.subarray(offset, offset + Math.min(this.#credit, maxPayloadBytes));
      this.#credit -= part.length;
      this.#unacknowledged += part.length;
      offset += part.length;
      this.#wire.send(FrameType.stdin, this.#channel, part);
    }
  }

  onCredit(bytes: number): void {
    if (bytes === 0 || bytes > this.#unacknowledged)
      throw new FrameError("credit for stdin that was never sent");
    this.#unacknowledged -= bytes;
    this.#credit += bytes;
    this.#wakeUp();
  }

  stop(): void {
    this.#stopped = true;
    this.#wakeUp();
  }

  #wakeUp(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
