import type { Duplex } from "node:stream";
import { FrameError } from "@berth/init";
import { StdioDemux } from "../docker/stdio-demux.ts";

export interface StreamListener {
  /** What it returns is awaited before the next bytes. */
  onBytes(stream: "stdout" | "stderr", bytes: Buffer): void | Promise<void>;
  /** It threw, or the bytes are not the engine's. The stream goes on without it. */
  onError(error: unknown): void;
}

/**
 * The hijacked connection of one exec: both outputs in order of arrival, and stdin. While the listener is busy the
 * connection is not read, the engine's buffers fill and the command blocks in its write.
 */
export class ExecStream {
  /** Settles when nothing more comes and the listener has had all; never rejects. */
  readonly ended: Promise<void>;
  readonly #settleEnded: () => void;
  readonly #socket: Duplex;
  readonly #listener: StreamListener;
  #delivery: Promise<void> | undefined;
  #pausedSinceMs: number | undefined;
  #pausedBeforeMs = 0;
  #isEnded = false;
  #deaf = false;
  #lastActiveMs = performance.now();

  constructor(socket: Duplex, listener: StreamListener) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#settleEnded = resolve;
    this.#socket = socket;
    this.#listener = listener;
    const demux = new StdioDemux((stream, bytes) => this.#deliver(stream, bytes));
    socket.on("data", (chunk: Buffer) => {
      try {
        demux.push(chunk);
      } catch (error) {
        if (!(error instanceof FrameError)) throw error;
        this.#refuse(error);
        this.cut();
      }
    });
    socket.on("error", () => this.#end());
    socket.on("end", () => this.#end());
    socket.on("close", () => this.#end());
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  get isPaused(): boolean {
    return this.#delivery !== undefined;
  }

  /** Time in which the listener was busy. */
  get pausedMs(): number {
    const now = performance.now();
    return this.#pausedBeforeMs + now - (this.#pausedSinceMs ?? now);
  }

  /** How long nothing has come although it could have. */
  get quietMs(): number {
    return this.isPaused ? 0 : performance.now() - this.#lastActiveMs;
  }

  /** Stop listening; what was received is still delivered. */
  cut(): void {
    this.#socket.destroy();
    this.#end();
  }

  /** Rejects only with what the source threw. A command that does not read all of it is no error. */
  async feed(source: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    if (source instanceof Uint8Array) await this.#send(source);
    else {
      for await (const chunk of source) {
        if (this.#isEnded) return;
        await this.#send(chunk);
      }
    }
    this.endInput();
  }

  endInput(): void {
    if (!this.#isEnded) this.#socket.end();
  }

  async #send(bytes: Uint8Array): Promise<void> {
    if (this.#isEnded || this.#socket.writableEnded || bytes.length === 0 || this.#socket.write(bytes))
      return;
    await new Promise<void>((resolve) => {
      const done = () => {
        this.#socket.off("drain", done);
        this.#socket.off("close", done);
        resolve();
      };
      this.#socket.on("drain", done);
      this.#socket.on("close", done);
    });
  }

  #deliver(stream: "stdout" | "stderr", bytes: Buffer): void {
    this.#lastActiveMs = performance.now();
    if (this.#delivery === undefined) {
      const pending = this.#hand(stream, bytes);
      if (pending !== undefined) this.#await(pending);
      return;
    }
    this.#await(this.#delivery.then(() => this.#hand(stream, bytes)));
  }

  #hand(stream: "stdout" | "stderr", bytes: Buffer): void | Promise<void> {
    if (this.#deaf) return undefined;
    try {
      return this.#listener.onBytes(stream, bytes)?.catch((error: unknown) => this.#refuse(error));
    } catch (error) {
      return this.#refuse(error);
    }
  }

  #refuse(error: unknown): undefined {
    if (this.#deaf) return;
    this.#deaf = true;
    this.#listener.onError(error);
  }

  #await(pending: Promise<void>): void {
    const delivery = pending.then(() => {
      if (this.#delivery === delivery) this.#resume();
    });
    this.#delivery = delivery;
    this.#pausedSinceMs ??= performance.now();
    this.#socket.pause();
  }

  #resume(): void {
    this.#delivery = undefined;
    this.#pausedBeforeMs = this.pausedMs;
    this.#pausedSinceMs = undefined;
    this.#lastActiveMs = performance.now();
    this.#socket.resume();
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.#delivery === undefined) this.#settleEnded();
    else void this.#delivery.then(this.#settleEnded);
  }
}
