import type { Work } from "./in-slices.ts";

/**
 * Bytes of all patterns, and so states: about 60 MB of tables. It keeps the keys of edges, `state * 256 + byte + 1`, below 2^31: beyond, a
 * lookup would miss edges, and secrets would leave unmasked.
 */
export const mostPatternBytes = 2 ** 21;
/** Larger tables are filled further: they do not fit in the processor's cache in any case. */
const manyStates = 2 ** 20;
/** So many states are made between two yields. */
const yieldEvery = 1_024;

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

  private constructor(trie: Trie, { root, edges }: Edges) {
    this.#root = root;
    this.#edges = edges;
    this.#mask = edges.length / 2 - 1;
    this.depth = trie.depth.subarray(0, trie.size);
    this.matched = trie.ends.subarray(0, trie.size);
    this.open = new Int32Array(trie.size);
    this.#fallback = new Int32Array(trie.size);
  }

  static *building(patterns: readonly Uint8Array[]): Work<Automaton> {
    const most = patterns.reduce((sum, { length }) => sum + length, 1);
    if (most > mostPatternBytes + 1)
      throw new RangeError(`patterns of ${most - 1} bytes are more than ${mostPatternBytes}`);
    const slots = 2 ** Math.ceil(Math.log2((most > manyStates ? 1.4 : 2) * most + 2));
    const edges: Edges = { root: new Int32Array(256), edges: new Int32Array(2 * slots) };
    const trie = yield* grown(patterns, most, edges);
    const made = new Automaton(trie, edges);
    yield* made.#link(trie);
    return made;
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

  /** From the shallow states to the deep ones: each builds on shallower ones. */
  *#link({ parent, byte, isInner, size, deepest }: Trie): Work<void> {
    const { depth, matched, open } = this;
    const order = yield* byDepth(depth, size, deepest);
    for (let at = 0; at < size; at++) {
      if (at % yieldEvery === 0) yield;
      const state = order[at] as number;
      if (state === 0) continue;
      const above = parent[state] as number;
      const back = above === 0 ? 0 : this.step(this.#fallback[above] as number, byte[state] as number);
      this.#fallback[state] = back;
      if (matched[state] === 0) matched[state] = matched[back] as number;
      open[state] = isInner[state] === 1 ? (depth[state] as number) : (open[back] as number);
    }
  }

  #edge(state: number, byte: number): number {
    return edgeOf(this.#edges, this.#mask, state, byte);
  }
}

interface Edges {
  readonly root: Int32Array;
  readonly edges: Int32Array;
}

interface Trie {
  size: number;
  deepest: number;
  readonly depth: Int32Array;
  readonly ends: Int32Array;
  readonly parent: Int32Array;
  readonly byte: Uint8Array;
  readonly isInner: Uint8Array;
}

function* grown(patterns: readonly Uint8Array[], most: number, { root, edges }: Edges): Work<Trie> {
  const mask = edges.length / 2 - 1;
  const trie: Trie = {
    size: 1,
    deepest: 0,
    depth: new Int32Array(most),
    ends: new Int32Array(most),
    parent: new Int32Array(most),
    byte: new Uint8Array(most),
    isInner: new Uint8Array(most),
  };
  let read = 0;
  for (const pattern of patterns) {
    let state = 0;
    for (const byte of pattern) {
      if (++read % yieldEvery === 0) yield;
      let next = state === 0 ? (root[byte] as number) : edgeOf(edges, mask, state, byte);
      if (next === 0) {
        next = trie.size++;
        trie.parent[next] = state;
        trie.byte[next] = byte;
        trie.depth[next] = (trie.depth[state] as number) + 1;
        trie.isInner[state] = 1;
        if (state === 0) root[byte] = next;
        else addEdge(edges, mask, state, byte, next);
      }
      state = next;
    }
    trie.ends[state] = pattern.length;
    trie.deepest = Math.max(trie.deepest, pattern.length);
  }
  return trie;
}

function edgeOf(edges: Int32Array, mask: number, state: number, byte: number): number {
  const wanted = state * 256 + byte + 1;
  for (let at = Math.imul(wanted, 0x9e3779b1) >>> 7; ; at++) {
    const slot = 2 * (at & mask);
    const found = edges[slot];
    if (found === wanted) return edges[slot + 1] as number;
    if (found === 0) return 0;
  }
}

function addEdge(edges: Int32Array, mask: number, state: number, byte: number, next: number): void {
  const key = state * 256 + byte + 1;
  let at = Math.imul(key, 0x9e3779b1) >>> 7;
  while (edges[2 * (at & mask)] !== 0) at++;
  edges[2 * (at & mask)] = key;
  edges[2 * (at & mask) + 1] = next;
}

/** A counting sort: there may be a million states. */
function* byDepth(depth: Int32Array, size: number, deepest: number): Work<Int32Array> {
  const places = new Int32Array(deepest + 2);
  for (let state = 0; state < size; state++) {
    if (state % yieldEvery === 0) yield;
    const behind = (depth[state] as number) + 1;
    places[behind] = (places[behind] as number) + 1;
  }
  for (let level = 1; level < places.length; level++)
    places[level] = (places[level] as number) + (places[level - 1] as number);
  const order = new Int32Array(size);
  for (let state = 0; state < size; state++) {
    if (state % yieldEvery === 0) yield;
    const level = depth[state] as number;
    const place = places[level] as number;
    order[place] = state;
    places[level] = place + 1;
  }
  return order;
}
