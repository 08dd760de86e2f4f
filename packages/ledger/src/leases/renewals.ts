import type { SandboxKey } from "@berth/protocol";
import type { Leases, RenewResult } from "./leases.ts";

interface Asked {
  readonly key: SandboxKey;
  readonly epoch: number;
  readonly resolve: (answer: RenewResult) => void;
  readonly reject: (error: unknown) => void;
}

/** Holders renew on the ticks of one clock; their timers fire a few milliseconds apart. */
const collectedMs = 10;

/** Renews the leases of one worker process: those asked for at about the same time in one call. */
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

  renew(key: SandboxKey, epoch: number): Promise<RenewResult> {
    return new Promise((resolve, reject) => {
      if (this.#asked.push({ key, epoch, resolve, reject }) === 1)
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
