import type { OutputStream } from "@berth/protocol";
import type { OutputWindow } from "./channel.ts";
import { OutputQueue } from "./output-queue.ts";

export type OutputConsumer = (stream: OutputStream, bytes: Buffer) => void | Promise<void>;

/**
 * Hands a channel's output to its consumer, one chunk at a time and in order, and returns credit as it is taken. A
 * consumer that fails gets nothing more; `onError` is called once.
 */
export class OutputDelivery {
  readonly #window: OutputWindow;
  readonly #consumer: OutputConsumer;
  readonly #onError: () => void;
  readonly #waiting = new OutputQueue();
  #busy: Promise<void> | undefined;
  #failed = false;

  constructor(window: OutputWindow, consumer: OutputConsumer, onError: () => void) {
    this.#window = window;
    this.#consumer = consumer;
    this.#onError = onError;
  }

  /** Resolves when the consumer has taken all output; undefined when it already has. Never rejects. */
  get busy(): Promise<void> | undefined {
    return this.#busy;
  }

  push(stream: OutputStream, bytes: Buffer): void {
    this.#window.received(bytes.length);
    if (this.#failed) return;
    if (this.#busy !== undefined) {
      this.#waiting.push(stream, bytes);
      return;
    }
    try {
      const pending = this.#consumer(stream, bytes);
      if (pending === undefined) this.#window.consumed(bytes.length);
      else this.#busy = this.#drain(pending, bytes.length);
    } catch {
      this.#fail();
    }
  }

  async #drain(first: Promise<void>, firstBytes: number): Promise<void> {
    try {
      await first;
      this.#window.consumed(firstBytes);
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
        await this.#consumer(next.stream, next.bytes);
        this.#window.consumed(next.bytes.length);
      }
    } catch {
      this.#fail();
    } finally {
      this.#busy = undefined;
    }
  }

  #fail(): void {
    this.#failed = true;
    this.#onError();
  }
}
