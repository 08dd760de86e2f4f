/** At most one lookup in thirty finds a bit by chance: each costs a look into the exact table, which does not fit in the cache. */
const bitsPerBlock = 32;
/** Upper and lower case are one here, as hexadecimal and URL-encoded forms have both: half as many blocks. */
const folded = 0x20202020;
const fewestBits = 2 ** 17;
const mostBits = 2 ** 25;

/** Blocks of four or eight bytes: a table of bits to look in first, and an exact one behind it. */
export class BlockSet {
  readonly bytes: 4 | 8;
  readonly bits: Int32Array;
  /** Shifts a block's hash so that the rest is the number of its bit. */
  readonly shift: number;
  /** Open addressing: both halves of a block, and 1 where there is one. */
  readonly #slots: Int32Array;
  readonly #mask: number;

  constructor(bytes: 4 | 8, most: number) {
    this.bytes = bytes;
    const wanted = Math.min(mostBits, Math.max(fewestBits, bitsPerBlock * most));
    const exponent = Math.ceil(Math.log2(wanted));
    this.bits = new Int32Array(2 ** exponent / 32);
    this.shift = 32 - exponent;
    const slots = 2 ** Math.ceil(Math.log2(2 * most + 2));
    this.#slots = new Int32Array(3 * slots);
    this.#mask = slots - 1;
  }

  add(from: DataView, at: number): void {
    const low = word(from, at);
    const high = this.bytes === 8 ? word(from, at + 4) : 0;
    const hash = hashOf(low, high);
    const bit = hash >>> this.shift;
    this.bits[bit >>> 5] = (this.bits[bit >>> 5] as number) | (1 << (bit & 31));
    const slot = this.#slotOf(low, high, hash);
    this.#slots[slot] = low;
    this.#slots[slot + 1] = high;
    this.#slots[slot + 2] = 1;
  }

  /** For a block whose bit is set. */
  has(low: number, high: number, hash: number): boolean {
    return this.#slots[this.#slotOf(low, high, hash) + 2] === 1;
  }

  /** The slot where the block is, or would be. */
  #slotOf(low: number, high: number, hash: number): number {
    const slots = this.#slots;
    for (let at = hash; ; at++) {
      const slot = 3 * (at & this.#mask);
      if (slots[slot + 2] === 0 || (slots[slot] === low && slots[slot + 1] === high)) return slot;
    }
  }
}

export function word(bytes: DataView, at: number): number {
  return bytes.getInt32(at, true) | folded;
}

export function hashOf(low: number, high: number): number {
  return Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
}
