import type { SandboxKey } from "@berth/protocol";
import type { Leases, MeasuredBytes, RenewResult } from "./leases.ts";

interface Asked {
  readonly key: SandboxKey;
  readonly epoch: number;
  readonly bytes: MeasuredBytes | undefined;
  readonly resolve: (answer: RenewResult) => void;
  readonly reject: (error: unknown) => void;
}

/** How long a renewal waits for others: holders renew on the same ticks, but their timers fire a few milliseconds apart. */
const collectedMs = 10;

/** Renews the leases of one worker process. Renewals that are requested at about the same time share one call. */
export class Renewals {
  readonly #leases: Leases;
  readonly #instance: string;
  readonly #lengthMs: number;
  #asked: Asked[] = [];

  constructor(leases: Leases, instance: string, lengthMs: number) {
    this.#leases = leases;
    this.#instance = instance;
    this.#lengthMs = lengthMs;
  }

  /** `bytes`: in its workspace, as last measured. */
  renew(key: SandboxKey, epoch: number, bytes?: MeasuredBytes): Promise<RenewResult> {
    return new Promise((resolve, reject) => {
      if (this.#asked.push({ key, epoch, bytes, resolve, reject }) === 1)
        setTimeout(() => void this.#send(), collectedMs);
    });
  }

  async #send(): Promise<void> {
    const asked = this.#asked;
    this.#asked = [];
    const atOnce = await this.#leases.renewedAtOnce().catch(() => 1);
    for (let from = 0; from < asked.length; from += atOnce)
      void this.#renew(asked.slice(from, from + atOnce));
  }

  async #renew(page: readonly Asked[]): Promise<void> {
    try {
      const answers = await this.#leases.renew(page, this.#instance, this.#lengthMs);
      page.forEach(({ resolve, reject }, index) => {
        const answer = answers[index];
        if (answer) resolve(answer);
        else reject(new Error(`${answers.length} answers to ${page.length} renewals`));
      });
    } catch (error) {
      for (const { reject } of page) reject(error);
    }
  }
}
