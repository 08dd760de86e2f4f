import type { Duplex } from "node:stream";
import type { ByteListener, ByteStream } from "../init/byte-stream.ts";
import { StdioDemux } from "./stdio-demux.ts";

/** init writes to stderr only a last message before it dies. Of a longer text the end is kept. */
const stderrKeptBytes = 2048;

/** The container's attached stdin and stdout as a stream to init. */
export class AttachedStream implements ByteStream {
  readonly #socket: Duplex;
  #listener: ByteListener | undefined;
  #stderr = "";
  #ended = false;

  constructor(socket: Duplex) {
    this.#socket = socket;
    // Errors before listen() would be thrown by the emitter; the end is reported by listen() itself.
    socket.on("error", () => {});
  }

  send(bytes: Uint8Array): boolean {
    return this.#ended ? true : this.#socket.write(bytes);
  }

  get ended(): boolean {
    return this.#ended || this.#socket.destroyed;
  }

  /** A later listener takes over: a container is parked and adopted over one stream. */
  listen(listener: ByteListener): void {
    const isFirst = this.#listener === undefined;
    this.#listener = listener;
    if (isFirst) this.#read();
    if (this.#socket.destroyed) this.#end("the container ended");
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #read(): void {
    const demux = new StdioDemux((stream, bytes) => {
      if (stream === "stdout") this.#listener?.onBytes(bytes);
      else this.#stderr = (this.#stderr + bytes.toString("latin1")).slice(-stderrKeptBytes);
    });
    this.#socket.on("data", (chunk: Buffer) => {
      if (this.#ended) return;
      try {
        demux.push(chunk);
      } catch (error) {
        this.#end(error instanceof Error ? error.message : String(error));
      }
    });
    this.#socket.on("drain", () => this.#listener?.onDrain());
    this.#socket.on("error", (error: Error) => this.#end(`the attached stream failed: ${error.message}`));
    this.#socket.on("end", () => this.#end("the container ended"));
    this.#socket.on("close", () => this.#end("the container ended"));
  }

  #end(detail: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#socket.destroy();
    this.#listener?.onEnd(this.#stderr === "" ? detail : `${detail}; it wrote last: ${this.#stderr.trim()}`);
  }
}
