import { Metrics, serveMetrics } from "@berth/service";
import { expect, test } from "vitest";

test("counters, gauges and histograms are served in Prometheus' text format", async () => {
  const metrics = new Metrics();
  const requests = metrics.counter("requests_total", "Requests.", ["route", "status"]);
  requests.inc({ route: "/a", status: 200 });
  requests.inc({ route: "/a", status: 200 });
  requests.inc({ route: 'b"\n\\' });
  metrics.gauge("open", "Open.", async () => 3);
  const seconds = metrics.histogram("seconds", "Seconds.", ["route"], [0.1, 1]);
  for (const value of [0.05, 0.5, 5]) seconds.observe({ route: "/a" }, value);
  expect(await metrics.text()).toBe(`# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{route="/a",status="200"} 2
requests_total{route="b\\"\\n\\\\"} 1

# HELP open Open.
# TYPE open gauge
open 3

# HELP seconds Seconds.
# TYPE seconds histogram
seconds_bucket{le="0.1",route="/a"} 1
seconds_bucket{le="1",route="/a"} 2
seconds_bucket{le="+Inf",route="/a"} 3
seconds_sum{route="/a"} 5.55
seconds_count{route="/a"} 3
`);
});

test("a gauge has no sample while its value is unknown, and a labelled gauge only the latest samples", async () => {
  const metrics = new Metrics();
  let value: number | undefined = 1;
  metrics.gauge("known", "Known.", () => value);
  metrics.labelledGauge("busy", "Busy.", ["tenant"], () =>
    value === undefined ? [] : [{ labels: { tenant: "acme" }, value }],
  );
  const samples = async () => (await metrics.text()).match(/^\w.*/gm);
  expect(await samples()).toEqual(["known 1", 'busy{tenant="acme"} 1']);
  value = undefined;
  expect(await samples()).toBeNull();
});

test("the description of a process has its build, memory, descriptors, event loop and garbage collector", async () => {
  const metrics = new Metrics();
  metrics.describeProcess("gateway", "1.2.3");
  const text = await metrics.text();
  expect(text).toContain('berth_build_info{app="gateway",version="1.2.3"} 1');
  for (const name of [
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_open_fds",
    "nodejs_heap_size_used_bytes",
    "nodejs_eventloop_lag_p99_seconds",
    "nodejs_gc_duration_seconds",
  ])
    expect(text).toContain(`# TYPE ${name} `);
});

test("a metric that cannot be read fails its scrape with a 500, and the next scrape is answered", async () => {
  const metrics = new Metrics();
  let isAway = true;
  metrics.gauge("jobs", "Jobs.", async () => {
    if (isAway) throw new Error("Redis is away");
    return 7;
  });
  const server = await serveMetrics(metrics, { host: "127.0.0.1", port: 0 });
  try {
    const scrape = () => fetch(server.url, { signal: AbortSignal.timeout(10_000) });
    const failed = await scrape();
    expect([failed.status, await failed.text()]).toEqual([500, expect.stringContaining("Redis is away")]);
    isAway = false;
    expect(await (await scrape()).text()).toContain("jobs 7");
  } finally {
    server.close();
  }
});
