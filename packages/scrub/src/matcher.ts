import { Automaton } from "./automaton.ts";
import { BlockSet, hashOf, word } from "./block-set.ts";
import type { Work } from "./in-slices.ts";
import { addSpan, type Span } from "./spans.ts";

/** A longer stride saves little, and its table is larger. */
const longestStride = 32;
/** Shorter patterns have room for blocks of four bytes only. */
const shortestForWide = 16;

export interface Found {
  /** Ascending, and none touches another. One that began in earlier bytes has a negative start. */
  readonly spans: Span[];
  /** The automaton's state after the last byte. */
  readonly state: number;
  /** How many of the last bytes, earlier ones included, may be the beginning of a pattern. */
  readonly openBytes: number;
}

export interface ReadOn {
  readonly spans: readonly Span[];
  /** After so many of the bytes. */
  readonly state: number;
  readonly read: number;
}

/**
 * Finds patterns in bytes. Only every `stride`th block of bytes is looked up in a set. Each pattern is so long that one of those blocks
 * is in its first bytes. Where the set has the block, the automaton reads on from before it, and only forwards: no input makes it read a
 * byte more than twice.
 */
export class Matcher {
  /** Bytes of the longest pattern. */
  readonly longest: number;
  readonly #automaton: Automaton;
  readonly #stride: number;
  readonly #blocks: BlockSet;
  /** First four bytes of each pattern. */
  readonly #heads: BlockSet;

  private constructor(patterns: readonly Uint8Array[], automaton: Automaton) {
    const shortest = patterns.reduce(
      (least, { length }) => Math.min(least, length),
      Number.POSITIVE_INFINITY,
    );
    const blockBytes = shortest >= shortestForWide ? 8 : 4;
    this.longest = patterns.reduce((most, { length }) => Math.max(most, length), 0);
    this.#automaton = automaton;
    this.#stride = Math.min(longestStride, shortest - blockBytes + 1);
    this.#blocks = new BlockSet(blockBytes, this.#stride * patterns.length);
    this.#heads = new BlockSet(4, patterns.length);
  }

  /** Each pattern has eight bytes or more. */
  static *building(patterns: readonly Uint8Array[]): Work<Matcher> {
    const matcher = new Matcher(patterns, yield* Automaton.building(patterns));
    for (const view of patterns.map(viewOf)) {
      yield;
      matcher.#heads.add(view, 0);
      for (let at = 0; at < matcher.#stride; at++) matcher.#blocks.add(view, at);
    }
    return matcher;
  }

  /** Finds patterns in bytes that follow others, after which the state was `before`. */
  find(bytes: Uint8Array, before = 0): Found {
    const { length } = bytes;
    const automaton = this.#automaton;
    const { depth, matched } = automaton;
    const stride = this.#stride;
    const view = viewOf(bytes);
    const spans: Span[] = [];
    let at = 0;
    let state = before;
    const read = () => {
      state = automaton.step(state, bytes[at++] as number);
      const found = matched[state] as number;
      if (found > 0) addSpan(spans, at - found, at);
    };
    // Continue until the match that is under way began in these bytes.
    while (at < length && at < (depth[state] as number)) read();
    /** Every pattern that begins before this place is found, or the automaton is within it. */
    let probe = at - (depth[state] as number);
    while (at < length) {
      probe = this.#nextHit(view, probe);
      const isBehindLast = probe > length - this.#blocks.bytes;
      const from = Math.min(probe - stride + 1, length);
      const begin = isBehindLast && at < from ? this.#nextHead(view, from) : from;
      if (at < begin) {
        at = begin;
        state = 0;
      }
      // No block can be looked up behind this place: the automaton reads the rest.
      if (isBehindLast) break;
      while (at < length && at - (depth[state] as number) <= probe) read();
      probe = at - (depth[state] as number);
    }
    while (at < length) read();
    return { spans, state, openBytes: automaton.open[state] as number };
  }

  /** The first looked-up block, from there on, that is in the set; behind the last block if none is. */
  #nextHit(bytes: DataView, from: number): number {
    const blocks = this.#blocks;
    const { bits, shift } = blocks;
    const stride = this.#stride;
    const isWide = blocks.bytes === 8;
    const last = bytes.byteLength - blocks.bytes;
    let probe = from;
    for (; probe <= last; probe += stride) {
      const low = word(bytes, probe);
      const high = isWide ? word(bytes, probe + 4) : 0;
      const hash = hashOf(low, high);
      const bit = hash >>> shift;
      if ((((bits[bit >>> 5] as number) >>> (bit & 31)) & 1) === 1 && blocks.has(low, high, hash)) break;
    }
    return probe;
  }

  /** Where a pattern may begin whose first bytes are present; otherwise the last three bytes, which are too few to decide. */
  #nextHead(bytes: DataView, from: number): number {
    const heads = this.#heads;
    const { bits, shift } = heads;
    const last = bytes.byteLength - heads.bytes;
    let at = from;
    for (; at <= last; at++) {
      const low = word(bytes, at);
      const hash = hashOf(low, 0);
      const bit = hash >>> shift;
      if ((((bits[bit >>> 5] as number) >>> (bit & 31)) & 1) === 1 && heads.has(low, 0, hash)) break;
    }
    return at;
  }

  /**
   * Reads bytes only as long as a pattern is under way that began before the run of bytes that these continue: `before` is the state,
   * and so many bytes of the run have been read. Finds those patterns alone, and their beginnings of `leastBytes` or more: the rest may
   * come in other bytes.
   */
  readOn(bytes: Uint8Array, before: number, runBytes: number, leastBytes: number): ReadOn {
    const { depth, matched } = this.#automaton;
    const spans: Span[] = [];
    let state = before;
    let at = 0;
    while (at < bytes.length && (depth[state] as number) > runBytes + at) {
      state = this.#automaton.step(state, bytes[at++] as number);
      const found = matched[state] as number;
      if (found > runBytes + at) addSpan(spans, at - found, at);
      const length = depth[state] as number;
      if (length >= leastBytes && length > runBytes + at) addSpan(spans, at - length, at);
    }
    return { spans, state, read: at };
  }

  /** Finds each pattern, and each beginning of one of at least so many bytes. Looks at every byte. */
  findBeginnings(bytes: Uint8Array, leastBytes: number): Span[] {
    const spans: Span[] = [];
    let state = 0;
    for (let at = 0; at < bytes.length; at++) {
      state = this.#automaton.step(state, bytes[at] as number);
      const length = this.#automaton.depth[state] as number;
      if (length >= leastBytes) addSpan(spans, at + 1 - length, at + 1);
    }
    return spans;
  }
}

function viewOf({ buffer, byteOffset, length }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, length);
}
