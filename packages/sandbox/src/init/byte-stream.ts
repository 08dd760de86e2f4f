/** An ordered stream of bytes to and from init: the container's attached stdio, or a socket. */
export interface ByteStream {
  /** Returns false when the stream's buffer is full; `onDrain` is called when it has room again (backpressure). */
  send(bytes: Uint8Array): boolean;
  /** Called before anything is sent. */
  listen(listener: ByteListener): void;
  /** Idempotent; `onEnd` follows. */
  destroy(): void;
}

export interface ByteListener {
  /** The bytes are overwritten once it returns. */
  readonly onBytes: (bytes: Buffer) => void;
  readonly onDrain: () => void;
  /** Once. The detail is for people. */
  readonly onEnd: (detail: string) => void;
}
