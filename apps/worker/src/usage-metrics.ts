import type { Metrics } from "@berth/service";
import type { TenancyEvent } from "@berth/tenancy";

/** Usage of this worker's jobs, summed over tenants: a label per tenant would make as many series as there are tenants. */
export function usageMetrics(metrics: Metrics): (event: TenancyEvent) => void {
  const cpu = metrics.counter("berth_job_cpu_seconds_total", "Cpu time of commands.", []);
  const read = metrics.counter("berth_job_in_bytes_total", "Bytes of jobs as they were submitted.", []);
  const written = metrics.counter(
    "berth_job_out_bytes_total",
    "Bytes that commands wrote, that were read and found, and of artifacts.",
    [],
  );
  return (event) => {
    if (event.event !== "job.finished" && event.event !== "job.retrying") return;
    cpu.inc(event.cpuMs / 1_000);
    read.inc(event.inBytes);
    written.inc(event.outBytes);
  };
}
