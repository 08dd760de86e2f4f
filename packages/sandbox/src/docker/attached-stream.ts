import type { Duplex } from "node:stream";
import type { ByteListener, ByteStream } from "../init/byte-stream.ts";
import { StdioDemux } from "./stdio-demux.ts";

/** What init writes to stderr is only ever a last word; more than this is noise. */
const stderrKeptBytes = 2048;

/** The container's attached stdin and stdout as a stream to init. */
export class AttachedStream implements ByteStream {
  readonly #socket: Duplex;
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

  listen(listener: ByteListener): void {
    const end = (detail: string) => {
      if (this.#ended) return;
      this.#ended = true;
      this.#socket.destroy();
      listener.onEnd(this.#stderr === "" ? detail : `${detail}; its last words: ${this.#stderr.trim()}`);
    };
    const demux = new StdioDemux((stream, bytes) => {
      if (stream === "stdout") listener.onBytes(bytes);
      else this.#stderr = (this.#stderr + bytes.toString("latin1")).slice(-stderrKeptBytes);
    });
    this.#socket.on("data", (chunk: Buffer) => {
      if (this.#ended) return;
      try {
        demux.push(chunk);
      } catch (error) {
        end(error instanceof Error ? error.message : String(error));
      }
    });
    this.#socket.on("drain", listener.onDrain);
    this.#socket.on("error", (error: Error) => end(`the attached stream failed: ${error.message}`));
    this.#socket.on("end", () => end("the container ended"));
    this.#socket.on("close", () => end("the container ended"));
    if (this.#socket.destroyed) end("the container ended");
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
