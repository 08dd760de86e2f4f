import type { DockerDriver } from "@berth/sandbox";
import { Metrics, type MetricsServer, serveMetrics } from "@berth/service";
import type { TenancyEvent } from "@berth/tenancy";
import type { Config } from "./config.ts";
import type { Parking } from "./parking.ts";
import { stageMetrics } from "./stage-metrics.ts";
import { usageMetrics } from "./usage-metrics.ts";

export interface WorkerMetrics {
  readonly server: MetricsServer;
  readonly onEvent: (event: TenancyEvent) => void;
  /** Adds gauges of containers that wait for a job. */
  readonly watch: (parking: Parking, driver: DockerDriver) => void;
}

/** Opens the worker's metrics port; undefined without one. */
export async function openMetrics(
  { metricsListen: at }: Config,
  version: string,
): Promise<WorkerMetrics | undefined> {
  if (at === undefined) return undefined;
  const metrics = new Metrics();
  metrics.describeProcess("worker", version);
  const [observeStages, countUsage] = [stageMetrics(metrics), usageMetrics(metrics)];
  return {
    server: await serveMetrics(metrics, at),
    onEvent: (event) => {
      observeStages(event);
      countUsage(event);
    },
    watch: (parking, driver) => watchContainers(metrics, parking, driver),
  };
}

function watchContainers(metrics: Metrics, parking: Parking, driver: DockerDriver): void {
  metrics.gauge(
    "berth_parked_containers",
    "Containers that this worker keeps for their sandboxes' next jobs, with nothing running in them.",
    () => parking.count,
  );
  metrics.gauge("berth_parked_bytes", "Memory of these.", () => parking.memoryBytes);
  metrics.gauge(
    "berth_warm_containers",
    "Containers that this worker started ahead of time, and that wait for a sandbox.",
    () => driver.warm?.ready ?? 0,
  );
}
