import type { Metrics } from "@berth/service";
import type { TenancyEvent } from "@berth/tenancy";

const mebibyte = 1024 ** 2;
const memoryBounds = [4, 16, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192].map((count) => count * mebibyte);

/** Usage of this worker's jobs, summed over tenants: a label per tenant would make as many series as there are tenants. */
export function usageMetrics(metrics: Metrics): (event: TenancyEvent) => void {
  const cpu = metrics.counter("berth_job_cpu_seconds_total", "Cpu time of commands.", []);
  const read = metrics.counter("berth_job_in_bytes_total", "Bytes of jobs as they were submitted.", []);
  const written = metrics.counter(
    "berth_job_out_bytes_total",
    "Bytes that commands wrote, that were read and found, and of artifacts.",
    [],
  );
  const peak = metrics.histogram(
    "berth_job_peak_memory_bytes",
    "The most memory that each job's sandbox had while it ran, if the kernel reports it.",
    [],
    memoryBounds,
  );
  return (event) => {
    if (event.event !== "job.finished" && event.event !== "job.retrying") return;
    cpu.inc(event.cpuMs / 1_000);
    read.inc(event.inBytes);
    written.inc(event.outBytes);
    if (event.peakMemoryBytes !== undefined) peak.observe(event.peakMemoryBytes);
  };
}
