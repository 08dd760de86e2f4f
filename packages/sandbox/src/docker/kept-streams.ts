import type { AttachedStream } from "./attached-stream.ts";

/**
 * The attached streams of the containers that this process parked, so that it need not ask the engine for them again. At most as many
 * as there are parked containers.
 *
 *   kept ──take()──▶ the adopter's
 *     └──the container ends, or another worker adopts it──▶ closed
 */
export class KeptStreams {
  readonly #streams = new Map<string, AttachedStream>();

  keep(containerId: string, stream: AttachedStream): void {
    this.#streams.get(containerId)?.destroy();
    this.#streams.set(containerId, stream);
    const close = () => this.#close(containerId, stream);
    // A parked init sends nothing. Bytes that arrive here are answers to another holder.
    stream.listen({ onBytes: close, onDrain: () => {}, onEnd: close });
  }

  /** Undefined when none is open. */
  take(containerId: string): AttachedStream | undefined {
    const stream = this.#streams.get(containerId);
    this.#streams.delete(containerId);
    return stream?.ended ? undefined : stream;
  }

  #close(containerId: string, stream: AttachedStream): void {
    if (this.#streams.get(containerId) !== stream) return;
    this.#streams.delete(containerId);
    stream.destroy();
  }
}
