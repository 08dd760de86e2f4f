import { type Frame, FrameDecoder, FrameError, FrameType, LinkedTag, type Records } from "@berth/init";
import type { LinkEnd } from "../link.ts";
import type { ByteStream } from "./byte-stream.ts";
import type { LinkListener } from "./link-listener.ts";

export type Carrier = "unix" | "stdio";

/** An init that knows LINK answers at once, connected or not; this is for one that hangs. */
const linkTryMs = 1_000;
/** A socket ends at once with its container, and what the engine says about that comes a little later. */
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

  /** Sends bytes without a frame over stdio, to whatever process reads there. */
  sendRaw(bytes: Uint8Array): void {
    this.#stdio.send(bytes);
  }

  async writable(): Promise<void> {
    await this.#drain?.promise;
  }

  /** Right behind HELLO: an init that knows no links ignores it. `send` sends a frame. */
  ask(listener: LinkListener, send: (type: number, payload: Uint8Array) => void): void {
    this.#isTrying = true;
    this.#listener = listener;
    send(FrameType.link, listener.offer);
  }

  /** Asks an init that supports links. Resolves when it is decided which transport carries the frames. */
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
    // Until then init may be writing to stdout what it had for it.
    await this.#linked.promise;
  }

  /** An answer over the link: it carries the frames from now on. An answer over stdio: there is no link, and the number is the reason. */
  onLinked(records: Records, from: Carrier): void {
    if (!this.#isTrying) throw new FrameError("an answer to no LINK");
    this.#isTrying = false;
    if (from === "unix") this.#linked.resolve();
    else if (this.#link !== undefined) throw new FrameError("a link that is refused and carries");
    else if (records.requiredNumber(LinkedTag.errno) > 0) this.#listener?.giveUp();
  }

  /** `reason` is for who still waits in `join`. Idempotent. */
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
