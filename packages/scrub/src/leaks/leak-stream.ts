import { maskSpans, type Span } from "../spans.ts";
import { type Leak, leaksIn } from "./leak-scan.ts";

/** Longer than a key in any encoding; a private key has its own mark. */
const heldWord = 1_024;
const heldBytes = 16 * 1_024;
/** So many bytes before a key decide whether it is one, also in base64, hexadecimal or URL encoding. */
const contextBytes = 16;
const wordAtEnd = /[A-Za-z0-9_\-+/=.:%~!*'()]+$/;
const privateKey = /-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY-----/g;
const endMark = "-----END ";
const nothing = Buffer.alloc(0);

export interface LeakStreamOptions {
  readonly block: boolean;
  readonly onLeak: (leak: Leak) => void;
}

/**
 * Looks for keys in a stream that may be cut anywhere. With `block` it masks them. Then it holds back the word at the end until the word is
 * over, or so long that no key begins before its last part. Without `block` it holds nothing back.
 */
export class LeakStream {
  readonly #block: boolean;
  readonly #onLeak: (leak: Leak) => void;
  /** The stream's last bytes, unmasked: first those that have left, then those that are held back. */
  #window: Buffer = nothing;
  /** In the window: the bytes before this place have left. */
  #left = 0;
  /** In the window: leaks that end before it have been reported. */
  #settled = 0;
  /** In the window: a private key begins here, and its end has not come. */
  #openKey: number | undefined;

  constructor({ block, onLeak }: LeakStreamOptions) {
    this.#block = block;
    this.#onLeak = onLeak;
  }

  /** Whether `release` would let held bytes go. Not within a private key: its other lines would follow unmasked. */
  get isWaiting(): boolean {
    return this.#window.length > this.#left && this.#openKey === undefined;
  }

  push(bytes: Buffer): Buffer {
    const from = this.#window.length;
    const all = from === 0 ? bytes : Buffer.concat([this.#window, bytes]);
    if (this.#isWithinKey(all, from)) {
      this.#window = all;
      if (this.#block) return nothing;
      this.#left = all.length;
      return bytes;
    }
    const text = all.toString("latin1");
    return this.#pass(all, text, this.#keepFrom(text));
  }

  /** Call it after a pause: treats the word at the end as whole. Later bytes that complete a key are still masked. */
  release(): Buffer {
    return this.isWaiting ? this.end() : nothing;
  }

  end(): Buffer {
    const all = this.#window;
    return this.#pass(all, all.toString("latin1"), all.length);
  }

  /** Within a private key only its end is searched for: otherwise each new byte would cost a scan of the whole key. */
  #isWithinKey(all: Buffer, from: number): boolean {
    if (this.#openKey === undefined || all.length - this.#openKey >= heldBytes) return false;
    return all.indexOf(endMark, Math.max(this.#openKey, from - endMark.length)) === -1;
  }

  #pass(all: Buffer, text: string, keepFrom: number): Buffer {
    const leaks = leaksIn(text);
    const settled = Math.max(this.#settled, beforeCrossing(leaks, keepFrom));
    for (const leak of leaks) if (leak.end <= settled && leak.end > this.#settled) this.#onLeak(leak);
    const until = this.#block ? Math.max(this.#left, settled) : all.length;
    const leaving = all.subarray(this.#left, until);
    const masked = this.#block && leaks.length > 0 ? masking(leaving, leaks, this.#left) : leaving;
    const keep = Math.max(0, Math.min(settled - contextBytes, text.length - wordLength(text) - contextBytes));
    this.#window = Buffer.from(all.subarray(keep));
    this.#left = until - keep;
    this.#settled = settled - keep;
    if (this.#openKey !== undefined) this.#openKey -= keep;
    return masked;
  }

  /** Where a key begins that may be incomplete. */
  #keepFrom(text: string): number {
    const from = text.length - wordLength(text);
    const last = [...text.matchAll(privateKey)].at(-1)?.index;
    const isOpen = last !== undefined && text.length - last < heldBytes && text.indexOf(endMark, last) === -1;
    // Its first line may still be coming.
    const begun = text.lastIndexOf("-----BEGIN ");
    const isBeginning = begun >= 0 && text.length - begun < longestFirstLine && !text.includes("\n", begun);
    this.#openKey = isOpen ? last : undefined;
    return Math.min(from, isOpen ? last : from, isBeginning ? begun : from);
  }
}

const longestFirstLine = 100;

function wordLength(text: string): number {
  return wordAtEnd.exec(text.slice(-heldWord))?.[0].length ?? 0;
}

/** The last place before `at` that is within no leak. */
function beforeCrossing(leaks: readonly Span[], at: number): number {
  let to = at;
  for (const { start, end } of leaks.toSorted((a, b) => b.end - a.end))
    if (start < to && end > to) to = start;
  return to;
}

function masking(bytes: Buffer, leaks: readonly Span[], by: number): Buffer {
  const copy = Buffer.from(bytes);
  maskSpans(
    copy,
    leaks.map(({ start, end }) => ({ start: start - by, end: end - by })).filter(({ end }) => end > 0),
  );
  return copy;
}
