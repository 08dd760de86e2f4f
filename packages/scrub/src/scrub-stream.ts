import type { Matcher } from "./matcher.ts";
import { addSpan, maskSpans, type Span } from "./spans.ts";

const nothing = Buffer.alloc(0);
/** After a pause at most so many bytes of a possible secret leave. Otherwise a prompt that ends like one would not appear. */
const shownBytes = 4;
const joinedBytes = 4_096;

/**
 * Masks secrets in a stream that may be cut anywhere. It holds back the bytes at the end that a secret may begin with, and nothing
 * else. The matcher may be replaced at any time; the stream then reads the held bytes again.
 */
export class ScrubStream {
  readonly #current: () => Matcher | undefined;
  #matcher: Matcher | undefined;
  /** The bytes held back, unmasked. */
  #held: Buffer = nothing;
  /** How many of the held bytes have left already, by `release`. */
  #left = 0;
  /** In the held bytes; one may begin before them. */
  #spans: Span[] = [];
  #state = 0;
  #masked = 0;

  constructor(current: () => Matcher | undefined) {
    this.#current = current;
  }

  /** How many places were masked. */
  get masked(): number {
    return this.#masked;
  }

  /** Whether `release` would let held bytes go. */
  get isWaiting(): boolean {
    return this.#held.length > this.#left && this.#held.length <= shownBytes;
  }

  /** Returns the bytes that may leave now, in order. The last piece may be in the given buffer, which is changed. */
  push(bytes: Buffer): Buffer[] {
    const matcher = this.#current();
    if (matcher !== this.#matcher) this.#replace(matcher);
    if (matcher === undefined) return pieces(this.end(), bytes);
    const held = this.#held;
    const left = this.#left;
    const found = matcher.find(bytes, this.#state);
    const spans = shifted(this.#spans, -held.length);
    for (const { start, end } of found.spans) addSpan(spans, start, end);
    if (found.openBytes === 0 && spans.length === 0) {
      this.#hold(nothing, 0, found.state, []);
      return pieces(held.subarray(left), bytes);
    }
    /** The bytes before this place leave now; negative: within the held bytes. */
    const settled = bytes.length - found.openBytes;
    // Copied unmasked: later bytes may complete a secret that overlaps a masked one.
    const keptOfHeld = settled >= 0 ? nothing : held.subarray(settled);
    const kept = Buffer.concat([keptOfHeld, bytes.subarray(Math.max(0, settled))]);
    const leftOfKept = Math.max(0, left - (held.length - keptOfHeld.length));
    maskSpans(bytes, spans);
    maskSpans(held, shifted(spans, held.length));
    this.#masked += spans.filter(({ start }) => start >= -held.length && start < settled).length;
    const rest = spans.filter(({ end }) => end > settled);
    this.#hold(kept, leftOfKept, found.state, shifted(rest, -settled));
    return pieces(
      held.subarray(left, held.length - keptOfHeld.length),
      bytes.subarray(0, Math.max(0, settled)),
    );
  }

  /** Call it after a pause: returns the beginning of a possible secret, if it is short. The rest is masked when it comes. */
  release(): Buffer {
    if (!this.isWaiting) return nothing;
    const leaving = this.#heldMasked();
    this.#left = this.#held.length;
    return leaving;
  }

  /** Call it at the end of the stream. Returns the held bytes. */
  end(): Buffer {
    this.#masked += this.#spans.filter(({ start }) => start >= 0).length;
    const leaving = this.#heldMasked();
    this.#hold(nothing, 0, 0, []);
    return leaving;
  }

  #heldMasked(): Buffer {
    const copy = Buffer.from(this.#held);
    maskSpans(copy, this.#spans);
    return copy.subarray(this.#left);
  }

  #hold(held: Buffer, left: number, state: number, spans: Span[]): void {
    this.#held = held;
    this.#left = left;
    this.#state = state;
    this.#spans = spans;
  }

  #replace(matcher: Matcher | undefined): void {
    this.#matcher = matcher;
    const again = matcher?.find(this.#held);
    this.#state = again?.state ?? 0;
    const spans = [...this.#spans, ...(again?.spans ?? [])].sort((a, b) => a.end - b.end);
    this.#spans = [];
    for (const { start, end } of spans) addSpan(this.#spans, start, end);
  }
}

function shifted(spans: readonly Span[], by: number): Span[] {
  return spans.map(({ start, end }) => ({ start: start + by, end: end + by }));
}

/** Drops empty pieces, and joins short ones: a consumer's cost is per piece. */
function pieces(first: Buffer, second: Buffer): Buffer[] {
  if (first.length === 0) return second.length === 0 ? [] : [second];
  if (second.length === 0) return [first];
  return second.length < joinedBytes ? [Buffer.concat([first, second])] : [first, second];
}
