import type { Clock, OutputPiece } from "./tenancy-ports.ts";

/** One publication for this much output, or for what came in `intervalMs`. */
const batchBytes = 64 * 1024;
const intervalMs = 50;

/**
 * Gathers a job's output into few publications. Holds at most one batch while another is being published; whoever adds more
 * waits. Past `limitBytes` it publishes nothing more: the result still has head and tail.
 */
export class OutputBatch {
  readonly #clock: Clock;
  readonly #publish: (pieces: readonly OutputPiece[]) => Promise<void>;
  #left: number;
  #pieces: OutputPiece[] = [];
  #bytes = 0;
  #timer: AbortController | undefined;
  #publishing: Promise<void> = Promise.resolve();

  constructor(limitBytes: number, clock: Clock, publish: (pieces: readonly OutputPiece[]) => Promise<void>) {
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
    if (!this.#timer) {
      this.#timer = new AbortController();
      void this.#clock.sleep(intervalMs, this.#timer.signal).then(
        () => this.flush(),
        () => {},
      );
    }
    return undefined;
  }

  /** Settles when everything added so far is published. */
  flush(): Promise<void> {
    this.#timer?.abort();
    this.#timer = undefined;
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#bytes = 0;
    if (pieces.length > 0) {
      this.#publishing = this.#publishing.then(() => this.#publish(pieces)).catch(() => {});
    }
    return this.#publishing;
  }
}
