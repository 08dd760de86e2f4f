import { FailTag, type Frame, FrameError, FrameType, Records } from "@berth/init";
import type { LinkEnd } from "../link.ts";

/** What a channel may do to its connection. */
export interface ChannelWire {
  send(type: number, channel: number, payload: Uint8Array): void;
  /** Resolves when the stream takes more; at once when it already does. */
  writable(): Promise<void>;
}

/**
 * One request to init and its answers, up to exactly one last frame.
 *
 *   open ──EXIT, FAIL or DONE──▶ ended
 *     └────connection closed───▶ ended
 *
 * A frame that its state does not allow throws, and the connection is given up: see `FrameError`.
 */
export abstract class Channel {
  readonly id: number;
  protected readonly wire: ChannelWire;

  constructor(id: number, wire: ChannelWire) {
    this.id = id;
    this.wire = wire;
  }

  /** True when this was the last frame. */
  abstract onFrame(frame: Frame): boolean;
  abstract onClosed(end: LinkEnd): void;
}

/** Bytes init may send before it needs more credit. Several round trips' worth, so that init never waits for credit. */
export const outputWindowBytes = 1024 * 1024;
/** Credit is returned in portions of this size, so that many small reads cost one frame. */
const returnAtBytes = outputWindowBytes / 4;

/** Counts what init may still send, and returns credit as the consumer takes it. */
export class OutputWindow {
  #allowed = outputWindowBytes;
  #owed = 0;
  readonly #grant: (bytes: number) => void;

  constructor(grant: (bytes: number) => void) {
    this.#grant = grant;
  }

  received(bytes: number): void {
    if (bytes === 0) throw new FrameError("an empty output frame");
    this.#allowed -= bytes;
    if (this.#allowed < 0) throw new FrameError("more output than the credit allows");
  }

  consumed(bytes: number): void {
    this.#owed += bytes;
    if (this.#owed < returnAtBytes) return;
    this.#allowed += this.#owed;
    this.#grant(this.#owed);
    this.#owed = 0;
  }
}

export interface InitFailure {
  readonly code: string;
  readonly message: string;
}

export function readFailure(frame: Frame): InitFailure {
  const records = new Records(frame.payload);
  const clean = (text: string | undefined, limit: number) => printable((text ?? "").slice(0, limit));
  return { code: clean(records.text(FailTag.code), 64), message: clean(records.text(FailTag.message), 1024) };
}

/** For messages and logs. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return text.replace(/[\u0000-\u001f\u007f]/g, "?");
}

export function unexpectedFrame(frame: Frame): FrameError {
  const name = Object.entries(FrameType).find(([, type]) => type === frame.type)?.[0] ?? `type ${frame.type}`;
  return new FrameError(`unexpected ${name} on channel ${frame.channel}`);
}
