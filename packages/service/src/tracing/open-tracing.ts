import { type TracingSettings, tracesAddress } from "./settings.ts";
import type { SpanAttributes, Tracing } from "./tracing.ts";

export interface TracingOptions {
  /** The service's name, unless OTEL_SERVICE_NAME sets another. */
  readonly service: string;
  /** Attributes of every span of this process. */
  readonly attributes: SpanAttributes;
  /** Called once when the collector is unreachable or refuses, and once when it accepts spans again. */
  readonly onOutage: (outage: { readonly state: "lost" | "back"; readonly detail: string }) => void;
}

/** Undefined if no collector is configured: then no OpenTelemetry SDK is loaded and no span is made. */
export async function openTracing(
  settings: TracingSettings,
  options: TracingOptions,
): Promise<Tracing | undefined> {
  const address = tracesAddress(settings);
  if (address === undefined) return undefined;
  const { OtlpTracing } = await import("./otlp-tracing.ts");
  return new OtlpTracing(address, settings, options);
}
