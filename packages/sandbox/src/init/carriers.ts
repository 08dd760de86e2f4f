import { type Frame, FrameDecoder, FrameError, FrameType, LinkedTag, type Records } from "@berth/init";
import type { LinkEnd } from "../link.ts";
import type { ByteStream } from "./byte-stream.ts";
import type { LinkListener } from "./link-listener.ts";

export type Carrier = "unix" | "stdio";

/** init answers a LINK at once, connected or not. An init that hangs does not. */
const linkTryMs = 1_000;
/** The socket ends as soon as its container does. The attached stream ends a little later, with init's last message. */
const endDelayMs = 1_000;

export interface CarrierEvents {
  readonly onFrame: (frame: Frame, from: Carrier) => void;
  readonly onEnd: (end: LinkEnd) => void;
}

/**
 * What carries the frames of one connection.
 *
 *   stdio ──ask()──▶ trying ──init has connected and confirms it──▶ unix
 *                       └──an errno over stdio, or nothing in time──▶ stdio
 *
 * stdio stays attached in either case, and the end of either stream is the end of both.
 */
export class Carriers {
  readonly #stdio: ByteStream;
  readonly #events: CarrierEvents;
  readonly #linked = Promise.withResolvers<void>();
  #link: ByteStream | undefined;
  #listener: LinkListener | undefined;
  #isTrying = false;
  #drain: PromiseWithResolvers<void> | undefined;
  #isClosed = false;

  constructor(stdio: ByteStream, nonce: Uint8Array, events: CarrierEvents) {
    this.#stdio = stdio;
    this.#events = events;
    // It may not be awaited yet when the connection breaks.
    this.#linked.promise.catch(() => {});
    const decoder = new FrameDecoder(nonce);
    stdio.listen({
      onBytes: (bytes) => this.#onBytes(decoder, bytes, "stdio"),
      onDrain: () => this.#releaseDrain("stdio"),
      onEnd: (detail) => events.onEnd({ why: "stream-ended", detail }),
    });
  }

  get carrier(): Carrier {
    return this.#link === undefined ? "stdio" : "unix";
  }

  send(bytes: Uint8Array): void {
    const more = (this.#link ?? this.#stdio).send(bytes);
    if (!more) this.#drain ??= Promise.withResolvers<void>();
  }

  /** Sends bytes without a frame over stdio. */
  sendRaw(bytes: Uint8Array): void {
    this.#stdio.send(bytes);
  }

  async writable(): Promise<void> {
    await this.#drain?.promise;
  }

  /** Sends LINK right after HELLO, without waiting for the answer. An init that knows no links ignores it. */
  ask(listener: LinkListener, send: (type: number, payload: Uint8Array) => void): void {
    this.#isTrying = true;
    this.#listener = listener;
    send(FrameType.link, listener.offer);
  }

  /** Waits for init to connect. Resolves when it is decided which transport carries the frames. */
  async join(listener: LinkListener, send: (type: number, payload: Uint8Array) => void): Promise<void> {
    const timer = setTimeout(() => listener.giveUp(), linkTryMs);
    const link = await listener.accepted;
    clearTimeout(timer);
    if (!link) return;
    const decoder = new FrameDecoder();
    link.listen({
      onBytes: (bytes) => this.#onBytes(decoder, bytes, "unix"),
      onDrain: () => this.#releaseDrain("unix"),
      onEnd: (detail) => {
        if (!this.#isClosed)
          setTimeout(() => this.#events.onEnd({ why: "stream-ended", detail }), endDelayMs);
      },
    });
    this.#link = link;
    this.#releaseDrain("unix");
    send(FrameType.linkProof, listener.proof);
    // Until then init may still write frames to stdout that it had queued before.
    await this.#linked.promise;
  }

  /** LINKED over the link: the link carries the frames from now on. LINKED over stdio: init could not connect, and gives the errno. */
  onLinked(records: Records, from: Carrier): void {
    if (!this.#isTrying) throw new FrameError("a LINKED that answers no LINK");
    this.#isTrying = false;
    if (from === "unix") this.#linked.resolve();
    else if (this.#link !== undefined) throw new FrameError("a LINKED with an errno for a link that carries");
    else if (records.requiredNumber(LinkedTag.errno) > 0) this.#listener?.giveUp();
  }

  /** A caller that still waits in `join` gets `reason`. Idempotent. */
  close(reason: Error, { keepStdio }: { readonly keepStdio: boolean }): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#listener?.giveUp();
    this.#releaseDrain(this.carrier);
    this.#linked.reject(reason);
    this.#link?.destroy();
    if (!keepStdio) this.#stdio.destroy();
  }

  #onBytes(decoder: FrameDecoder, bytes: Buffer, from: Carrier): void {
    if (this.#isClosed) return;
    try {
      decoder.push(bytes, (frame) => {
        if (!this.#isClosed) this.#events.onFrame(frame, from);
      });
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#events.onEnd({ why: "protocol", detail: error.message });
    }
  }

  #releaseDrain(carrier: Carrier): void {
    if (carrier !== this.carrier) return;
    this.#drain?.resolve();
    this.#drain = undefined;
  }
}
