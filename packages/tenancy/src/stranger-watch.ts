import type { Line } from "./line.ts";
import type { TenancyPorts } from "./tenancy-ports.ts";

/** Leases between two looks: each look is a Redis command for each idle sandbox. */
const leasesApart = 3;

interface StrangerWatchOptions {
  readonly leaseMs: number;
  readonly ports: Pick<TenancyPorts, "clock" | "jobs">;
  readonly line: Line;
}

/**
 * Finds jobs that a holder took from the queue and that no worker runs. If another job is behind it,
 * that one's beginning finds it; this finds the last in line.
 */
export class StrangerWatch {
  readonly #options: StrangerWatchOptions;
  #lookedMs: number;

  constructor(options: StrangerWatchOptions) {
    this.#options = options;
    this.#lookedMs = options.ports.clock.now();
  }

  async look(): Promise<void> {
    const { leaseMs, ports, line } = this.#options;
    const nowMs = ports.clock.now();
    if (nowMs - this.#lookedMs < leaseMs * leasesApart) return;
    this.#lookedMs = nowMs;
    if ((await ports.jobs.active()).some(({ queuedId }) => !line.has(queuedId))) line.markStale();
  }
}
