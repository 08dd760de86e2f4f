import type { Line } from "./line.ts";
import type { TenancyPorts } from "./tenancy-ports.ts";

/** Leases between two checks: each is a Redis command for each idle sandbox. */
const leasesApart = 3;

interface UnknownJobCheckOptions {
  readonly leaseMs: number;
  readonly ports: Pick<TenancyPorts, "clock" | "jobs">;
  readonly line: Line;
}

/**
 * Marks the line stale if a job is taken that this tenancy does not know: a former holder took it, or an answer was lost. If another job
 * is behind it, that job's beginning finds it. This check finds it at the end of the line.
 */
export class UnknownJobCheck {
  readonly #options: UnknownJobCheckOptions;
  #checkedMs: number;

  constructor(options: UnknownJobCheckOptions) {
    this.#options = options;
    this.#checkedMs = options.ports.clock.now();
  }

  async run(): Promise<void> {
    const { leaseMs, ports, line } = this.#options;
    const nowMs = ports.clock.now();
    if (nowMs - this.#checkedMs < leaseMs * leasesApart) return;
    this.#checkedMs = nowMs;
    if ((await ports.jobs.active()).some(({ queuedId }) => !line.has(queuedId))) line.markStale();
  }
}
