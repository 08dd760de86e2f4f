import { Fault } from "@berth/protocol";
import { Problem, type ProblemCode } from "./http/problem.ts";
import type { Principal } from "./keys/principal.ts";

export interface ConcurrencyLimitOptions {
  readonly max: number;
  readonly maxPerKey: number;
  readonly code: ProblemCode;
  /** What is counted, for the error message. */
  readonly what: string;
  /** The tenant's ceiling that bounds them over all its keys. */
  readonly ceiling?: "streams" | "waits";
}

/** Limits how many streams or waits are open: in total, per key, and per tenant over all its keys. */
export class ConcurrencyLimit {
  readonly #options: ConcurrencyLimitOptions;
  readonly #perKey = new Map<string, number>();
  readonly #perTenant = new Map<string, number>();
  #taken = 0;

  constructor(options: ConcurrencyLimitOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes slots, or refuses. Releasing is idempotent. */
  take({ id, tenant, ceilings }: Principal, count = 1): Disposable {
    const { max, maxPerKey, code, what, ceiling } = this.#options;
    const ofKey = this.#perKey.get(id) ?? 0;
    if (ofKey + count > maxPerKey)
      throw new Problem(code, `this key may have ${maxPerKey} ${what}`, retryAfter);
    const limit = ceiling === undefined ? 0 : (ceilings?.[ceiling] ?? 0);
    const used = tenant === undefined ? 0 : (this.#perTenant.get(tenant) ?? 0);
    if (tenant !== undefined && ceiling !== undefined && limit > 0 && used + count > limit)
      throw new Fault("tenant-full", { tenant, ceiling, used, limit });
    if (this.#taken + count > max)
      throw new Problem(code, `this gateway may have ${max} ${what}`, retryAfter);
    this.#change(id, tenant, count);
    let given = false;
    return {
      [Symbol.dispose]: () => {
        if (!given) this.#change(id, tenant, -count);
        given = true;
      },
    };
  }

  #change(id: string, tenant: string | undefined, by: number): void {
    this.#taken += by;
    add(this.#perKey, id, by);
    if (tenant !== undefined) add(this.#perTenant, tenant, by);
  }
}

const retryAfter = { headers: { "retry-after": "5" } };

function add(counts: Map<string, number>, of: string, by: number): void {
  const now = (counts.get(of) ?? 0) + by;
  if (now > 0) counts.set(of, now);
  else counts.delete(of);
}
