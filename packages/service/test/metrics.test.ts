import { Metrics } from "@berth/service";
import { expect, test } from "vitest";

test("counters, gauges and histograms read as Prometheus expects them", () => {
  const metrics = new Metrics();
  const requests = metrics.counter("requests_total", "Requests.");
  requests.add({ route: "/a", status: 200 });
  requests.add({ route: "/a", status: 200 });
  requests.add({ route: 'b"\n\\' });
  metrics.gauge("open", "Open.", () => 3);
  metrics.gauge("unknown", "Not known now.", () => undefined);
  const seconds = metrics.histogram("seconds", "Seconds.", [0.1, 1]);
  seconds.observe({ route: "/a" }, 0.05);
  seconds.observe({ route: "/a" }, 0.5);
  seconds.observe({ route: "/a" }, 5);
  expect(metrics.text()).toBe(`# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{route="/a",status="200"} 2
requests_total{route="b\\"\\n\\\\"} 1
# HELP open Open.
# TYPE open gauge
open 3
# HELP unknown Not known now.
# TYPE unknown gauge
# HELP seconds Seconds.
# TYPE seconds histogram
seconds_bucket{route="/a",le="0.1"} 1
seconds_bucket{route="/a",le="1"} 2
seconds_bucket{route="/a",le="+Inf"} 3
seconds_sum{route="/a"} 5.55
seconds_count{route="/a"} 3
`);
});

test("a label that never repeats does not grow a counter without bound", () => {
  const metrics = new Metrics();
  const counter = metrics.counter("c", "C.");
  for (let index = 0; index < 10_000; index++) counter.add({ index });
  expect(metrics.text().split("\n").length).toBeLessThan(2_010);
});
