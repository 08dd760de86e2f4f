import { maskSpans } from "../spans.ts";
import { type Leak, leaksIn } from "./leak-scan.ts";

/** Longer than a key in any encoding; a private key has its own mark. */
const heldWord = 1_024;
const heldBytes = 16 * 1_024;
const wordAtEnd = /[A-Za-z0-9_\-+/=.:%~!*'()]+$/;
const nothing = Buffer.alloc(0);

/**
 * Looks for keys in a stream that may be cut anywhere. `block`: what looks like a key is masked, so the word at the end is held back until
 * it is over; otherwise nothing is.
 */
export class LeakStream {
  readonly #block: boolean;
  readonly #onLeak: (leak: Leak) => void;
  /** Its first `#left` bytes have left. */
  #held: Buffer = nothing;
  #left = 0;

  constructor(options: { readonly block: boolean; readonly onLeak: (leak: Leak) => void }) {
    this.#block = options.block;
    this.#onLeak = options.onLeak;
  }

  get isWaiting(): boolean {
    return this.#held.length > this.#left;
  }

  push(bytes: Buffer): Buffer {
    const all = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    const keepFrom = this.#keepFrom(all.toString("latin1"));
    return this.#leave(all, keepFrom);
  }

  /** After a pause: the word is taken for whole. */
  release(): Buffer {
    return this.end();
  }

  end(): Buffer {
    return this.#leave(this.#held, this.#held.length);
  }

  #leave(all: Buffer, keepFrom: number): Buffer {
    const settled = all.subarray(0, keepFrom);
    const leaks = leaksIn(settled.toString("latin1"));
    const held = Buffer.from(all.subarray(keepFrom));
    if (leaks.length > 0) {
      for (const leak of leaks) this.#onLeak(leak);
      if (this.#block) maskSpans(settled, leaks);
    }
    const leaving = all.subarray(this.#left, this.#block ? keepFrom : all.length);
    this.#held = held;
    this.#left = this.#block ? 0 : held.length;
    return leaving;
  }

  /** Where a key begins that may not be over. */
  #keepFrom(text: string): number {
    const word = wordAtEnd.exec(text.slice(-heldWord))?.[0].length ?? 0;
    const privateKey = text.lastIndexOf("-----BEGIN ");
    const isOpen = privateKey >= 0 && !/-----END [A-Z ]{1,40}-----/.test(text.slice(privateKey));
    const from = text.length - word;
    return isOpen && text.length - privateKey < heldBytes ? Math.min(from, privateKey) : from;
  }
}
