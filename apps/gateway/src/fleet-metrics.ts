import type { Berth, Scale } from "@berth/client";
import type { Metrics } from "@berth/service";

/** Several scrapers a second cost one look. */
const freshMs = 1_000;

const gauges: readonly [name: string, help: string, of: (scale: Scale) => number][] = [
  ["berth_workers", "Workers that are alive.", ({ workers }) => workers],
  ["berth_slots", "Sandboxes that all workers may hold.", ({ slots }) => slots],
  ["berth_slots_free", "Sandboxes that they may hold besides those they do.", ({ freeSlots }) => freeSlots],
  ["berth_jobs_unfinished", "Jobs accepted and not ended.", ({ unfinishedJobs }) => unfinishedJobs],
  [
    "berth_sandboxes_waiting",
    "Sandboxes with work that nobody holds.",
    ({ waitingSandboxes }) => waitingSandboxes,
  ],
  [
    "berth_oldest_wait_seconds",
    "How long the longest of them has waited.",
    ({ oldestWaitMs }) => oldestWaitMs / 1_000,
  ],
];

/** The fleet in numbers, as Redis has it at the moment somebody looks. The same from every gateway. */
export class FleetMetrics {
  readonly #berth: Berth;
  #scale: Scale | undefined;
  #looking: Promise<void> | undefined;
  #atMs = Number.NEGATIVE_INFINITY;

  constructor(berth: Berth, metrics: Metrics) {
    this.#berth = berth;
    metrics.gauge("berth_redis_up", "1 when Redis answered the last look.", () => (this.#scale ? 1 : 0));
    for (const [name, help, of] of gauges) metrics.gauge(name, help, () => this.#scale && of(this.#scale));
  }

  /** Looks, unless somebody just did. Redis being away is a number too. */
  async refresh(): Promise<void> {
    if (performance.now() - this.#atMs < freshMs) return;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    await this.#looking;
  }

  async #look(): Promise<void> {
    this.#scale = await this.#berth.scale().catch(() => undefined);
    this.#atMs = performance.now();
  }
}
