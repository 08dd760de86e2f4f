/** Collections that go back together, as the keys of a Redis that lost its last second. Values are replaced, never changed. */
export class Keyspace {
  readonly #copies: (() => () => void)[] = [];

  map<K, V>(): Map<K, V> {
    const map = new Map<K, V>();
    this.#copies.push(() => {
      const was = [...map];
      return () => {
        map.clear();
        for (const [key, value] of was) map.set(key, value);
      };
    });
    return map;
  }

  set<T>(): Set<T> {
    const set = new Set<T>();
    this.#copies.push(() => {
      const was = [...set];
      return () => {
        set.clear();
        for (const value of was) set.add(value);
      };
    });
    return set;
  }

  list<T>(): T[] {
    const list: T[] = [];
    this.#copies.push(() => {
      const was = [...list];
      return () => void list.splice(0, list.length, ...was);
    });
    return list;
  }

  /** What it gives back puts everything back as it is now. */
  snapshot(): () => void {
    const restores = this.#copies.map((copy) => copy());
    return () => {
      for (const restore of restores) restore();
    };
  }
}
