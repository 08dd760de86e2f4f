import type { GroupResult } from "@berth/client";
import type { Counter, Metrics } from "@berth/service";

/** Tenants that are counted for each one that is shown, so that the busiest are found. */
const countedPerShown = 10;

/** Sums of one tenant, since this gateway started to count it. */
interface TenantSum {
  jobs: number;
  cpuSeconds: number;
  inBytes: number;
  outBytes: number;
  peakMemoryBytes: number;
}

const tenantGauges: readonly [name: string, help: string, of: (sum: TenantSum) => number][] = [
  ["berth_tenant_jobs_finished", "Jobs that ended of the busiest tenants, about.", ({ jobs }) => jobs],
  ["berth_tenant_cpu_seconds", "Cpu time of those jobs, about.", ({ cpuSeconds }) => cpuSeconds],
  ["berth_tenant_in_bytes", "Bytes of those jobs as they were submitted, about.", ({ inBytes }) => inBytes],
  ["berth_tenant_out_bytes", "Bytes that those jobs brought out, about.", ({ outBytes }) => outBytes],
  [
    "berth_tenant_peak_memory_bytes",
    "The most memory that one of those jobs had.",
    ({ peakMemoryBytes }) => peakMemoryBytes,
  ],
];

/** Counts of jobs that ended, as this gateway sees its share of the results; the sum over all gateways is the fleet's. */
export class FinishedJobs {
  readonly #outcomes: Counter<"outcome">;
  readonly #tenants = new Map<string, TenantSum>();
  readonly #top: number;

  constructor(metrics: Metrics, top: number) {
    this.#top = top;
    this.#outcomes = metrics.counter(
      "berth_jobs_finished_total",
      "Jobs that ended, by how; sum over gateways.",
      ["outcome"],
    );
    if (top === 0) return;
    const busiest = () => [...this.#tenants].sort(([, a], [, b]) => b.jobs - a.jobs).slice(0, top);
    for (const [name, help, of] of tenantGauges)
      metrics.labelledGauge(name, help, ["tenant"], () =>
        busiest().map(([tenant, sum]) => ({ labels: { tenant }, value: of(sum) })),
      );
  }

  add({ result, tenant }: GroupResult): void {
    const { outcome } = result;
    this.#outcomes.inc({
      outcome: outcome.kind === "exited" && outcome.code !== 0 ? "failed" : outcome.kind,
    });
    if (this.#top === 0) return;
    const sum = this.#sumOf(tenant);
    const { inBytes = 0, outBytes = 0, peakMemoryBytes = 0 } = result.usage ?? {};
    sum.jobs++;
    sum.cpuSeconds += result.timing.cpuMs / 1_000;
    sum.inBytes += inBytes;
    sum.outBytes += outBytes;
    sum.peakMemoryBytes = Math.max(sum.peakMemoryBytes, peakMemoryBytes);
  }

  /** The space-saving algorithm: a new tenant replaces the one with the fewest jobs, and starts with its count. */
  #sumOf(tenant: string): TenantSum {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    let jobs = 0;
    if (this.#tenants.size >= this.#top * countedPerShown) {
      const [least, sum] = [...this.#tenants].reduce((a, b) => (b[1].jobs < a[1].jobs ? b : a));
      this.#tenants.delete(least);
      ({ jobs } = sum);
    }
    const fresh = { jobs, cpuSeconds: 0, inBytes: 0, outBytes: 0, peakMemoryBytes: 0 };
    this.#tenants.set(tenant, fresh);
    return fresh;
  }
}
