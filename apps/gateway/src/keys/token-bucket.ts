/** How long a bucket that nobody draws from is remembered: by then it is full again anyway. */
const idleMs = 10_000;
/** Whoever asks with ever new names must not fill the memory. */
const maxBuckets = 50_000;

interface Bucket {
  tokens: number;
  atMs: number;
}

/** So many a second per name, twice that at once. */
export class TokenBuckets {
  readonly #buckets = new Map<string, Bucket>();
  #sweptAtMs = 0;

  get size(): number {
    return this.#buckets.size;
  }

  /** Milliseconds to wait before trying again; 0: go on. What costs more than there can be takes all there is. */
  draw(name: string, perSecond: number, cost = 1, nowMs: number = performance.now()): number {
    this.#sweep(nowMs);
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

  #sweep(nowMs: number): void {
    if (nowMs - this.#sweptAtMs < idleMs && this.#buckets.size < maxBuckets) return;
    this.#sweptAtMs = nowMs;
    for (const [name, { atMs }] of this.#buckets) if (nowMs - atMs > idleMs) this.#buckets.delete(name);
    if (this.#buckets.size >= maxBuckets) this.#buckets.clear();
  }
}
