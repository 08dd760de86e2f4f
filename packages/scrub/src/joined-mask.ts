import { shortestSecretBytes } from "./forms.ts";
import type { Matcher } from "./matcher.ts";
import { maskSpans } from "./spans.ts";

/**
 * Masks a value that begins in one of several streams and ends in another, in the text that they make together in the order in which
 * their bytes leave. Each stream was masked alone before. It holds nothing back: of such a value the bytes behind the change are
 * masked, at the latest from its eighth byte on.
 *
 * Bytes are read only around a change of stream. While one stream goes on, its last bytes are kept for the next change.
 */
export class JoinedMask {
  readonly #current: () => Matcher | undefined;
  #matcher: Matcher | undefined;
  #stream: unknown;
  /** Of the stream that writes now, without a change. */
  #runBytes = 0;
  /** The last bytes of the text, as they came. */
  #last: Buffer = Buffer.alloc(0);
  #lastBytes = 0;
  /** Of those: so many are not in the state yet. */
  #unread = 0;
  #state = 0;

  constructor(current: () => Matcher | undefined) {
    this.#current = current;
  }

  /** In place. Gives back how many places were masked. */
  mask(stream: unknown, bytes: Buffer): number {
    const matcher = this.#current();
    if (matcher !== this.#matcher) this.#replace(matcher);
    if (matcher === undefined || bytes.length === 0) return 0;
    if (stream !== this.#stream) this.#change(matcher, stream);
    const { spans, state, read } = matcher.readOn(bytes, this.#state, this.#runBytes, shortestSecretBytes);
    this.#state = state;
    this.#runBytes += bytes.length;
    this.#keep(matcher, bytes, bytes.length - read);
    maskSpans(bytes, spans);
    return spans.length;
  }

  #change(matcher: Matcher, stream: unknown): void {
    this.#stream = stream;
    this.#runBytes = 0;
    const unread = this.#last.subarray(this.#lastBytes - this.#unread, this.#lastBytes);
    this.#state = matcher.find(unread, this.#state).state;
    this.#unread = 0;
  }

  /** No longer pattern than `most` bytes: what is before those no longer matters. */
  #keep({ longest: most }: Matcher, bytes: Buffer, unread: number): void {
    if (unread >= most) this.#state = 0;
    this.#unread += unread;
    const more = bytes.subarray(Math.max(0, bytes.length - most));
    if (this.#lastBytes + more.length > this.#last.length) this.#makeRoom(most, more.length);
    this.#last.set(more, this.#lastBytes);
    this.#lastBytes += more.length;
    if (this.#unread > most) {
      this.#unread = most;
      this.#state = 0;
    }
  }

  /** For twice the longest, so that a byte is moved about once. */
  #makeRoom(most: number, moreBytes: number): void {
    const kept = this.#last.subarray(Math.max(0, this.#lastBytes - most), this.#lastBytes);
    const room =
      this.#last.length >= kept.length + moreBytes ? this.#last : Buffer.alloc(2 * most + moreBytes);
    room.set(kept);
    this.#last = room;
    this.#lastBytes = kept.length;
  }

  #replace(matcher: Matcher | undefined): void {
    this.#matcher = matcher;
    this.#state = 0;
    if (matcher === undefined) this.#lastBytes = 0;
    this.#unread = this.#lastBytes;
    // Read again with the next bytes, whichever stream they are of.
    this.#stream = undefined;
  }
}
