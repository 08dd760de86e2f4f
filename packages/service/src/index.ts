export { configComplaint, exitBadConfig, readEnvironment } from "./environment.ts";
export type { Sample } from "./metrics.ts";
export { Counter, Histogram, Metrics } from "./metrics.ts";
export type { TracingOptions } from "./tracing/open-tracing.ts";
export { openTracing } from "./tracing/open-tracing.ts";
export type { TracingSettings } from "./tracing/settings.ts";
export { tracingSettings } from "./tracing/settings.ts";
export type {
  OpenSpan,
  PastSpan,
  SpanAttributes,
  SpanEnd,
  SpanStart,
  TraceContext,
  Tracing,
} from "./tracing/tracing.ts";
