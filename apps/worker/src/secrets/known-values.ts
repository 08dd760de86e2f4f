import { formBytes, mostPatternBytes, type Work } from "@berth/scrub";

/** Bounds short values, whose forms have few bytes. */
const mostValues = 4_000;

/**
 * The values that one sandbox's output is searched for. Beyond the bound it forgets the longest unused, but never one that a running job
 * holds.
 */
export class KnownValues {
  readonly #mostBytes: number;
  /** By value: bytes of its forms. The value used last is last. */
  readonly #bytesOf = new Map<string, number>();
  /** By value: how many running jobs hold it. */
  readonly #holders = new Map<string, number>();
  /** The same, of values that were measured last: it takes some hundredths of a millisecond each. */
  readonly #measured = new Map<string, number>();
  #bytes = 0;
  #isChanged = false;

  constructor(mostBytes: number = mostPatternBytes) {
    this.#mostBytes = mostBytes;
  }

  /** In no particular order. */
  get values(): string[] {
    return [...this.#bytesOf.keys()];
  }

  has(value: string): boolean {
    return this.#bytesOf.has(value);
  }

  /** What `use` would do at once otherwise. */
  *measure(values: readonly string[]): Work<void> {
    this.#measured.clear();
    for (const value of values) {
      yield;
      this.#sizeOf(value);
    }
  }

  /**
   * A job runs with `held`, and `seen` may be in its output. Undefined: running jobs would hold too many values; then nothing has changed.
   * `isChanged`: the set of values is another than before.
   */
  use(
    held: readonly string[],
    seen: readonly string[],
  ): { readonly isChanged: boolean; readonly release: () => void } | undefined {
    const mine = new Set(held);
    if (!this.#canHold(mine)) return undefined;
    this.#isChanged = false;
    for (const value of new Set([...seen, ...held])) this.#touch(value);
    for (const value of mine) this.#hold(value, 1);
    this.#forgetOldest();
    const release = () => {
      for (const value of mine) this.#hold(value, -1);
      mine.clear();
    };
    return { isChanged: this.#isChanged, release };
  }

  #canHold(more: ReadonlySet<string>): boolean {
    const all = new Set([...this.#holders.keys(), ...more]);
    let bytes = 0;
    for (const value of all) bytes += this.#sizeOf(value);
    return all.size <= mostValues && bytes <= this.#mostBytes;
  }

  #sizeOf(value: string): number {
    const known = this.#bytesOf.get(value) ?? this.#measured.get(value);
    if (known !== undefined) return known;
    const bytes = formBytes(Buffer.from(value));
    this.#measured.set(value, bytes);
    return bytes;
  }

  /** Moves the value to the end of the order. */
  #touch(value: string): void {
    const bytes = this.#sizeOf(value);
    if (!this.#bytesOf.delete(value)) {
      this.#bytes += bytes;
      this.#isChanged = true;
    }
    this.#bytesOf.set(value, bytes);
  }

  #hold(value: string, by: 1 | -1): void {
    const count = (this.#holders.get(value) ?? 0) + by;
    if (count === 0) this.#holders.delete(value);
    else this.#holders.set(value, count);
  }

  #forgetOldest(): void {
    for (const [value, bytes] of this.#bytesOf) {
      if (this.#bytesOf.size <= mostValues && this.#bytes <= this.#mostBytes) return;
      if (this.#holders.has(value)) continue;
      this.#bytesOf.delete(value);
      this.#bytes -= bytes;
      this.#isChanged = true;
    }
  }
}
