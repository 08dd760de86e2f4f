import { Fault } from "@berth/protocol";
import { Problem } from "./problem.ts";

/** One owner may take at most a quarter of the total, so that others always have room. */
const shareOfOne = 4;

/** One request's share of the budget. */
export interface BodyHold {
  /** Counts bytes; throws if they exceed the budget. */
  readonly take: (bytes: number) => void;
  /** Returns bytes of a body that is processed line by line: these lines have left memory. */
  readonly giveBack: (bytes: number) => void;
  /** Returns everything that is left. Idempotent. */
  readonly end: () => void;
}

/** The owner whose bodies share one limit. */
export interface BodyOwner {
  /** The tenant, over all its keys; without a tenant, the key. */
  readonly id: string;
  /** Absent for an admin key, which no tenant's ceiling bounds. */
  readonly tenant?: string | undefined;
  /** The tenant's ceiling `bodyBytes`; 0 is none. */
  readonly most: number;
}

/** Bytes of request bodies in memory, in total and per owner. */
export class BodyBudget {
  readonly #max: number;
  readonly #perOwner = new Map<string, number>();
  #used = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get used(): number {
    return this.#used;
  }

  /** Opens one request's share. */
  hold(owner: BodyOwner): BodyHold {
    let taken = 0;
    let ended = false;
    const giveBack = (bytes: number) => {
      const most = Math.min(bytes, taken);
      if (most > 0) this.#giveBack(owner.id, most);
      taken -= most;
    };
    return {
      take: (bytes) => {
        // The request has ended, so nothing would ever return these bytes.
        if (ended) return;
        this.#take(owner, bytes, taken);
        taken += bytes;
      },
      giveBack,
      end: () => {
        ended = true;
        giveBack(taken);
      },
    };
  }

  /** Counts more bytes of an owner's, or refuses them. `before`: what the same body has taken. */
  #take({ id, tenant = "", most }: BodyOwner, bytes: number, before: number): void {
    const used = this.#perOwner.get(id) ?? 0;
    const ofOwner = used + bytes;
    if (most > 0 && before + bytes > most)
      throw new Problem(
        "body-too-large",
        `the body is larger than the ${most} bytes that ${tenant} may have of request bodies at once (its ceiling bodyBytes)`,
      );
    if (most > 0 && ofOwner > most)
      throw new Fault("tenant-full", { tenant, ceiling: "bodyBytes", used, limit: most });
    if (this.#used + bytes > this.#max || ofOwner > this.#max / shareOfOne) {
      throw new Problem("too-many-requests", "the gateway's memory for request bodies is full; try again", {
        headers: { "retry-after": "1" },
      });
    }
    this.#used += bytes;
    this.#perOwner.set(id, ofOwner);
  }

  #giveBack(id: string, bytes: number): void {
    this.#used -= bytes;
    const ofOwner = (this.#perOwner.get(id) ?? 0) - bytes;
    if (ofOwner > 0) this.#perOwner.set(id, ofOwner);
    else this.#perOwner.delete(id);
  }
}
