import { LRUCache } from "lru-cache";

/** An unused bucket is full again after two seconds; no gateway serves so many names in that time. */
const maxBuckets = 10_000;

interface Bucket {
  tokens: number;
  atMs: number;
}

/** So many a second per name, twice that at once. */
export class TokenBuckets {
  readonly #buckets = new LRUCache<string, Bucket>({ max: maxBuckets });

  get size(): number {
    return this.#buckets.size;
  }

  /** Milliseconds to wait before trying again; 0: go on. What costs more than there can be takes all there is. */
  draw(name: string, perSecond: number, cost = 1, nowMs: number = performance.now()): number {
    const burst = perSecond * 2;
    const bucket = this.#buckets.get(name) ?? { tokens: burst, atMs: nowMs };
    bucket.tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) / 1_000) * perSecond);
    bucket.atMs = nowMs;
    this.#buckets.set(name, bucket);
    const price = Math.min(cost, burst);
    if (bucket.tokens < price) return Math.ceil(((price - bucket.tokens) / perSecond) * 1_000);
    bucket.tokens -= price;
    return 0;
  }
}
