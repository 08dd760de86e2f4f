export { configComplaint, exitBadConfig, readEnvironment } from "./environment.ts";
export { writeLastLine } from "./last-line.ts";
export type { ListenAddress } from "./listen-address.ts";
export { listenAddress } from "./listen-address.ts";
export type { Counter, Histogram, Sample } from "./metrics.ts";
export { Metrics } from "./metrics.ts";
export type { MetricsServer } from "./serve-metrics.ts";
export { serveMetrics } from "./serve-metrics.ts";
export type { TracingOptions } from "./tracing/open-tracing.ts";
export { openTracing } from "./tracing/open-tracing.ts";
export type { TracingSettings } from "./tracing/settings.ts";
export { tracingOf, tracingSettings } from "./tracing/settings.ts";
export type {
  OpenSpan,
  PastSpan,
  SpanAttributes,
  SpanEnd,
  SpanStart,
  TraceContext,
  Tracing,
} from "./tracing/tracing.ts";
export { within } from "./within.ts";
