import { Fault } from "@berth/protocol";
import type { Random } from "./random.ts";

export type Mishap = "refused" | "answer-lost" | "sent-again" | "slow" | "slow-answer";

/** What goes wrong with calls to Redis, and with sandboxes. */
export interface Weather {
  readonly redisAwayUntilMs: number;
  /** Redis refuses all writes until then. */
  readonly redisRefusesUntilMs: number;
  /** Redis has no memory left until then, and accepts nothing. */
  readonly redisFullUntilMs: number;
  mishap(call: string): Mishap | undefined;
  /** Whether a wait for a job hangs: its connection is open at one end only. */
  hangs(): boolean;
  /** One way. */
  latencyMs(mishap: Mishap | undefined): number;
  /** Why a sandbox cannot be opened now, if it cannot. */
  engineFault(nowMs: number): Fault | undefined;
}

/** How likely each thing is to go wrong, by seed; nothing does once it is calm. */
export class Storm implements Weather {
  readonly #random: Random;
  readonly #odds: readonly (readonly [Mishap, number])[];
  readonly #engineOdds: number;
  readonly #hangOdds: number;
  readonly #leaseMs: number;
  #calm = false;
  /** No sandbox can be started until then. */
  engineAwayUntilMs = 0;
  /** Redis does not answer until then. */
  redisAwayUntilMs = 0;
  redisRefusesUntilMs = 0;
  redisFullUntilMs = 0;

  constructor(random: Random, leaseMs: number) {
    this.#random = random;
    this.#leaseMs = leaseMs;
    const sometimes = (most: number) => (random.chance(0.5) ? random.next() * most : 0);
    this.#odds = [
      ["refused", sometimes(0.06)],
      ["answer-lost", sometimes(0.06)],
      ["sent-again", sometimes(0.04)],
      ["slow", sometimes(0.02)],
      ["slow-answer", sometimes(0.02)],
    ];
    this.#engineOdds = sometimes(0.2);
    this.#hangOdds = sometimes(0.03);
  }

  get isCalm(): boolean {
    return this.#calm;
  }

  calmDown(): void {
    this.#calm = true;
    this.engineAwayUntilMs = 0;
    this.redisAwayUntilMs = 0;
    this.redisRefusesUntilMs = 0;
    this.redisFullUntilMs = 0;
  }

  mishap(): Mishap | undefined {
    if (this.#calm) return undefined;
    return this.#odds.find(([, odds]) => this.#random.chance(odds))?.[0];
  }

  hangs(): boolean {
    return !this.#calm && this.#random.chance(this.#hangOdds);
  }

  latencyMs(mishap: Mishap | undefined): number {
    const usual = this.#random.chance(0.05) ? this.#random.between(20, 80) : this.#random.between(1, 4);
    return mishap?.startsWith("slow") ? this.#random.between(this.#leaseMs / 4, this.#leaseMs * 2.5) : usual;
  }

  engineFault(nowMs: number): Fault | undefined {
    const detail = "simulated";
    if (nowMs < this.engineAwayUntilMs) return new Fault("engine-unreachable", { address: "here", detail });
    if (this.#calm || !this.#random.chance(this.#engineOdds)) return undefined;
    return this.#random.chance(0.7)
      ? new Fault("sandbox-start-failed", { sandboxKey: "simulated", detail })
      : new Fault("image-missing", { image: "simulated", detail });
  }
}
