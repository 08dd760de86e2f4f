import { LRUCache } from "lru-cache";

/** An unused bucket refills within two seconds; no gateway sees this many names in that time. */
const maxBuckets = 10_000;

interface Bucket {
  tokens: number;
  atMs: number;
}

/** A token bucket per name: so many tokens per second, bursts of twice that. */
export class TokenBuckets {
  readonly #buckets = new LRUCache<string, Bucket>({ max: maxBuckets });

  get size(): number {
    return this.#buckets.size;
  }

  /** Milliseconds to wait before a retry; 0: go on. A cost above the capacity takes the whole bucket. */
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
