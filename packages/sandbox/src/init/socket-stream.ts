import { Socket, type SocketConstructorOpts } from "node:net";
import type { ByteListener, ByteStream } from "./byte-stream.ts";

/**
 * All links read into this one buffer, so listeners must keep no view of it. Otherwise Node allocates for every read, and garbage collection
 * took four fifths of the worker's time for a large output.
 */
const received = Buffer.allocUnsafeSlow(256 * 1024);

/** A connected, paused socket as a stream to init. */
export class SocketStream implements ByteStream {
  readonly #socket: Socket;
  #listener: ByteListener | undefined;
  #ended = false;

  constructor(accepted: Socket) {
    this.#socket = readingInto(received, accepted, (bytes) => {
      if (!this.#ended) this.#listener?.onBytes(bytes);
    });
    // Errors before listen() would be thrown by the emitter; the end is reported by listen() itself.
    this.#socket.on("error", () => {});
  }

  send(bytes: Uint8Array): boolean {
    return this.#ended ? true : this.#socket.write(bytes);
  }

  listen(listener: ByteListener): void {
    this.#listener = listener;
    const end = (detail: string) => {
      if (this.#ended) return;
      this.#ended = true;
      this.#socket.destroy();
      listener.onEnd(detail);
    };
    this.#socket.on("drain", listener.onDrain);
    this.#socket.on("error", (error) => end(`the unix link failed: ${error.message}`));
    this.#socket.on("end", () => end("the unix link ended"));
    this.#socket.on("close", () => end("the unix link was closed"));
    if (this.#socket.destroyed) end("the unix link was closed");
    else this.#socket.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

/** Node offers `onread` only for sockets that connect. An accepted socket gets it by way of its handle, which is private to Node. */
function readingInto(buffer: Buffer, accepted: Socket, onBytes: (bytes: Buffer) => void): Socket {
  const handle: unknown = Reflect.get(accepted, "_handle");
  if (typeof handle !== "object" || handle === null) return accepted.on("data", onBytes).pause();
  Reflect.set(accepted, "_handle", null);
  const callback = (bytes: number) => {
    onBytes(buffer.subarray(0, bytes));
    return true;
  };
  return new Socket({ handle, onread: { buffer, callback } } as SocketConstructorOpts);
}
