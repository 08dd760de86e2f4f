import type { GroupResult } from "@berth/client";
import type { Counter, Metrics } from "@berth/service";

/** Tenants kept track of to find the busiest: many times what is shown. */
const tracked = 10;

/** Counts of jobs that ended, as this gateway sees its share of the results; the sum over all gateways is the fleet's. */
export class FinishedJobs {
  readonly #outcomes: Counter<"outcome">;
  readonly #tenants = new Map<string, number>();
  readonly #top: number;

  constructor(metrics: Metrics, top: number) {
    this.#top = top;
    this.#outcomes = metrics.counter(
      "berth_jobs_finished_total",
      "Jobs that ended, by how; sum over gateways.",
      ["outcome"],
    );
    if (top === 0) return;
    metrics.labelledGauge(
      "berth_tenant_jobs_finished",
      "Jobs that ended of the busiest tenants, about.",
      ["tenant"],
      () =>
        [...this.#tenants]
          .sort(([, a], [, b]) => b - a)
          .slice(0, top)
          .map(([tenant, value]) => ({ labels: { tenant }, value })),
    );
  }

  add({ result, tenant }: GroupResult): void {
    const { outcome } = result;
    this.#outcomes.inc({
      outcome: outcome.kind === "exited" && outcome.code !== 0 ? "failed" : outcome.kind,
    });
    if (this.#top > 0) this.#count(tenant);
  }

  /** The space-saving sketch: a new tenant takes the place, and the count, of the one with the least. */
  #count(tenant: string): void {
    const known = this.#tenants.get(tenant);
    if (known !== undefined || this.#tenants.size < this.#top * tracked) {
      this.#tenants.set(tenant, (known ?? 0) + 1);
      return;
    }
    const [least, count] = [...this.#tenants].reduce((a, b) => (b[1] < a[1] ? b : a));
    this.#tenants.delete(least);
    this.#tenants.set(tenant, count + 1);
  }
}
