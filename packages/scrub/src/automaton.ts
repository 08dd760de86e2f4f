/**
 * Bytes of all patterns, and so states: about 60 MB of tables. It keeps the keys of edges, `state * 256 + byte + 1`, below 2^31: beyond, a
 * lookup would miss edges, and secrets would leave unmasked.
 */
export const mostPatternBytes = 2 ** 21;
/** Larger tables are filled further: they do not fit in the processor's cache in any case. */
const manyStates = 2 ** 20;

/** The Aho-Corasick automaton of some patterns: one step a byte, for any patterns and any bytes. */
export class Automaton {
  /** By state: how many bytes of a pattern have been read. */
  readonly depth: Int32Array;
  /** By state: the longest pattern that ends here; 0: none. */
  readonly matched: Int32Array;
  /** By state: the state of the longest suffix of the bytes read that begins a pattern. */
  readonly open: Int32Array;
  readonly #fallback: Int32Array;
  readonly #root: Int32Array;
  /** Open addressing: `state * 256 + byte + 1`, and beside it the state that follows. 0 is free. */
  readonly #edges: Int32Array;
  readonly #mask: number;

  constructor(patterns: readonly Uint8Array[]) {
    const most = patterns.reduce((sum, { length }) => sum + length, 1);
    if (most > mostPatternBytes + 1)
      throw new RangeError(`patterns of ${most - 1} bytes are more than ${mostPatternBytes}`);
    const slots = 2 ** Math.ceil(Math.log2((most > manyStates ? 1.4 : 2) * most + 2));
    this.#edges = new Int32Array(2 * slots);
    this.#mask = slots - 1;
    this.#root = new Int32Array(256);
    const trie = this.#grow(patterns, most);
    this.depth = trie.depth.slice(0, trie.size);
    this.matched = trie.ends.slice(0, trie.size);
    this.open = new Int32Array(trie.size);
    this.#fallback = new Int32Array(trie.size);
    this.#link(trie);
  }

  step(from: number, byte: number): number {
    let state = from;
    while (state !== 0) {
      const next = this.#edge(state, byte);
      if (next !== 0) return next;
      state = this.#fallback[state] as number;
    }
    return this.#root[byte] as number;
  }

  #grow(patterns: readonly Uint8Array[], most: number): Trie {
    const trie = {
      size: 1,
      depth: new Int32Array(most),
      ends: new Int32Array(most),
      parent: new Int32Array(most),
      byte: new Uint8Array(most),
      isInner: new Uint8Array(most),
    };
    for (const pattern of patterns) {
      let state = 0;
      for (const byte of pattern) {
        let next = state === 0 ? (this.#root[byte] as number) : this.#edge(state, byte);
        if (next === 0) {
          next = trie.size++;
          trie.parent[next] = state;
          trie.byte[next] = byte;
          trie.depth[next] = (trie.depth[state] as number) + 1;
          trie.isInner[state] = 1;
          this.#add(state, byte, next);
        }
        state = next;
      }
      trie.ends[state] = pattern.length;
    }
    return trie;
  }

  /** From the shallow states to the deep ones: each builds on shallower ones. */
  #link({ parent, byte, isInner, size }: Trie): void {
    const { depth, matched, open } = this;
    for (const state of byDepth(depth, size)) {
      if (state === 0) continue;
      const above = parent[state] as number;
      const back = above === 0 ? 0 : this.step(this.#fallback[above] as number, byte[state] as number);
      this.#fallback[state] = back;
      if (matched[state] === 0) matched[state] = matched[back] as number;
      open[state] = isInner[state] === 1 ? (depth[state] as number) : (open[back] as number);
    }
  }

  #edge(state: number, byte: number): number {
    const wanted = state * 256 + byte + 1;
    const edges = this.#edges;
    for (let at = Math.imul(wanted, 0x9e3779b1) >>> 7; ; at++) {
      const slot = 2 * (at & this.#mask);
      const found = edges[slot];
      if (found === wanted) return edges[slot + 1] as number;
      if (found === 0) return 0;
    }
  }

  #add(state: number, byte: number, next: number): void {
    if (state === 0) {
      this.#root[byte] = next;
      return;
    }
    const key = state * 256 + byte + 1;
    let at = Math.imul(key, 0x9e3779b1) >>> 7;
    while (this.#edges[2 * (at & this.#mask)] !== 0) at++;
    this.#edges[2 * (at & this.#mask)] = key;
    this.#edges[2 * (at & this.#mask) + 1] = next;
  }
}

/** A counting sort: there may be a million states. */
function byDepth(depth: Int32Array, size: number): Int32Array {
  const places = new Int32Array(depth.reduce((most, one) => Math.max(most, one), 0) + 2);
  for (let state = 0; state < size; state++) {
    const behind = (depth[state] as number) + 1;
    places[behind] = (places[behind] as number) + 1;
  }
  for (let level = 1; level < places.length; level++)
    places[level] = (places[level] as number) + (places[level - 1] as number);
  const order = new Int32Array(size);
  for (let state = 0; state < size; state++) {
    const level = depth[state] as number;
    const place = places[level] as number;
    order[place] = state;
    places[level] = place + 1;
  }
  return order;
}

interface Trie {
  size: number;
  readonly depth: Int32Array;
  readonly ends: Int32Array;
  readonly parent: Int32Array;
  readonly byte: Uint8Array;
  readonly isInner: Uint8Array;
}
