import type { Berth, Scale } from "@berth/client";
import type { Metrics } from "@berth/service";

/** All gauges of one scrape share one read of Redis; so do scrapes within this time. */
const freshMs = 1_000;

const gauges: readonly [name: string, help: string, of: (scale: Scale) => number][] = [
  ["berth_workers", "Workers that are alive.", ({ workers }) => workers],
  ["berth_slots", "Sandboxes that all workers may hold.", ({ slots }) => slots],
  ["berth_slots_free", "Sandboxes that they may hold besides those they do.", ({ freeSlots }) => freeSlots],
  ["berth_jobs_unfinished", "Jobs accepted and not ended.", ({ unfinishedJobs }) => unfinishedJobs],
  [
    "berth_sandboxes_waiting",
    "Sandboxes with work that no worker holds.",
    ({ waitingSandboxes }) => waitingSandboxes,
  ],
  [
    "berth_oldest_wait_seconds",
    "How long the longest of them has waited.",
    ({ oldestWaitMs }) => oldestWaitMs / 1_000,
  ],
];

/** The fleet's numbers from Redis at the time of the scrape. Every gateway reports the same. */
export function addFleetMetrics(metrics: Metrics, berth: Berth): void {
  let scale: Promise<Scale | undefined> | undefined;
  let atMs = 0;
  const read = () => {
    if (scale && performance.now() - atMs < freshMs) return scale;
    atMs = performance.now();
    scale = berth.scale().catch(() => undefined);
    return scale;
  };
  metrics.gauge("berth_redis_up", "1 when Redis answered the last look.", async () =>
    (await read()) ? 1 : 0,
  );
  for (const [name, help, of] of gauges) {
    metrics.gauge(name, help, async () => {
      const found = await read();
      return found && of(found);
    });
  }
}
