/** Collections that are restored together, like the keys of a Redis that lost its last second. Values are replaced, never mutated. */
export class Keyspace {
  readonly #all: { copy(): unknown[]; fill(values: unknown[]): void }[] = [];

  map<K, V>(): Map<K, V> {
    const map = new Map<K, V>();
    const fill = (values: unknown[]) => {
      map.clear();
      for (const [key, value] of values as [K, V][]) map.set(key, value);
    };
    this.#all.push({ copy: () => [...map], fill });
    return map;
  }

  set<T>(): Set<T> {
    const set = new Set<T>();
    const fill = (values: unknown[]) => {
      set.clear();
      for (const value of values as T[]) set.add(value);
    };
    this.#all.push({ copy: () => [...set], fill });
    return set;
  }

  list<T>(): T[] {
    const list: T[] = [];
    const fill = (values: unknown[]) => void list.splice(0, list.length, ...(values as T[]));
    this.#all.push({ copy: () => [...list], fill });
    return list;
  }

  /** The returned function restores the present state. Collections made later are then empty. */
  snapshot(): () => void {
    const copies = this.#all.map(({ copy }) => copy());
    return () => {
      for (const [index, { fill }] of this.#all.entries()) fill(copies[index] ?? []);
    };
  }
}
