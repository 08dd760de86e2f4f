import type { Socket } from "node:net";
import type { ByteListener, ByteStream } from "./byte-stream.ts";

/** A connected socket as a stream to init. */
export class SocketStream implements ByteStream {
  readonly #socket: Socket;
  #ended = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  send(bytes: Uint8Array): boolean {
    return this.#ended ? true : this.#socket.write(bytes);
  }

  listen(listener: ByteListener): void {
    const end = (detail: string) => {
      if (this.#ended) return;
      this.#ended = true;
      this.#socket.destroy();
      listener.onEnd(detail);
    };
    this.#socket.on("data", (chunk: Buffer) => {
      if (!this.#ended) listener.onBytes(chunk);
    });
    this.#socket.on("drain", listener.onDrain);
    this.#socket.on("error", (error) => end(`the unix link failed: ${error.message}`));
    this.#socket.on("close", () => end("the unix link was closed"));
    if (this.#socket.destroyed) end("the unix link was closed");
    else this.#socket.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
