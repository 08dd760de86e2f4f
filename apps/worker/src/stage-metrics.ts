import type { Metrics } from "@berth/service";
import type { TenancyEvent } from "@berth/tenancy";

/** From a warm job's fraction of a millisecond to a job that runs for an hour. */
const secondsBounds = [
  ...[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5],
  ...[1, 2.5, 5, 10, 30, 60, 300, 900, 3_600],
];

/**
 * How long the stages of each attempt took on this worker. `waiting`: from its submission until the worker asked for its sandbox, by the
 * clocks of two machines. `starting`: until it began. `running`: until it ended. `publishing`: until its end was written.
 */
export function stageMetrics(metrics: Metrics): (event: TenancyEvent) => void {
  const seconds = metrics.histogram(
    "berth_job_stage_seconds",
    "How long the stages of an attempt of a job took; cold: its sandbox had to be started for it.",
    ["stage", "cold"],
    secondsBounds,
  );
  const openings = metrics.counter(
    "berth_sandbox_openings_total",
    "Sandboxes that were opened: with a fresh container, or with one that was adopted.",
    ["how"],
  );
  return (event) => {
    if (event.event === "sandbox.opened") openings.inc({ how: event.how });
    if (event.event !== "job.finished" && event.event !== "job.retrying") return;
    const { queueMs, startMs, runMs, publishMs, outcome } = event;
    const cold = String(event.cold);
    const observe = (stage: string, ms: number) => seconds.observe({ stage, cold }, Math.max(0, ms) / 1_000);
    const begun = runMs > 0;
    // For a job that a dead worker began, the event has only its age.
    if (begun || outcome !== "lost") observe("waiting", queueMs);
    if (begun) {
      observe("starting", startMs);
      observe("running", runMs);
    }
    observe("publishing", publishMs);
  };
}
