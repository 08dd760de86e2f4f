import type { Clock, OutputPiece } from "./tenancy-ports.ts";

/** Publishes when it has this much output, or after `intervalMs`. */
const batchBytes = 64 * 1024;
const intervalMs = 50;

/**
 * Gathers a job's output into few publications. Holds at most one batch while another is being published; a caller that adds more
 * waits. Past `limitBytes` it publishes nothing more: the result still has head and tail.
 */
export class OutputBatch {
  readonly #clock: Clock;
  readonly #publish: (pieces: readonly OutputPiece[]) => Promise<unknown>;
  #left: number;
  #pieces: OutputPiece[] = [];
  #bytes = 0;
  #timer: AbortController | undefined;
  #publishing: Promise<unknown> = Promise.resolve();

  constructor(
    limitBytes: number,
    clock: Clock,
    publish: (pieces: readonly OutputPiece[]) => Promise<unknown>,
  ) {
    this.#left = limitBytes;
    this.#clock = clock;
    this.#publish = publish;
  }

  add({ stream, bytes }: OutputPiece): void | Promise<void> {
    if (this.#left <= 0) return undefined;
    const taken = Buffer.from(bytes.subarray(0, this.#left));
    this.#left -= taken.length;
    this.#pieces.push({ stream, bytes: taken });
    this.#bytes += taken.length;
    if (this.#bytes >= batchBytes) return this.flush();
    if (!this.#timer) this.#flushSoon();
    return undefined;
  }

  /** Waits while another batch is being published: output that arrives meanwhile becomes one batch. */
  #flushSoon(): void {
    const timer = new AbortController();
    this.#timer = timer;
    void Promise.all([this.#clock.sleep(intervalMs, timer.signal), this.#publishing]).then(
      () => (this.#timer === timer ? this.flush() : undefined),
      () => {},
    );
  }

  /** Settles when everything added so far is published. */
  async flush(): Promise<void> {
    this.#timer?.abort("flushed");
    this.#timer = undefined;
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#bytes = 0;
    if (pieces.length > 0) {
      this.#publishing = this.#publishing.then(() => this.#publish(pieces)).catch(() => {});
    }
    await this.#publishing;
  }
}
