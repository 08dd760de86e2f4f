import { type TracingSettings, tracesAddress } from "./settings.ts";
import type { SpanAttributes, Tracing } from "./tracing.ts";

export interface TracingOptions {
  /** The service's name, unless OTEL_SERVICE_NAME has another. */
  readonly service: string;
  /** Attributes of every span of this process. */
  readonly attributes: SpanAttributes;
  /** Once when the collector cannot be reached or refuses, once when it takes spans again. */
  readonly onOutage: (outage: { readonly state: "lost" | "back"; readonly detail: string }) => void;
}

/** Undefined when no collector is named: then no SDK of OpenTelemetry is loaded, and no span is ever made. */
export async function openTracing(
  settings: TracingSettings,
  options: TracingOptions,
): Promise<Tracing | undefined> {
  const address = tracesAddress(settings);
  if (address === undefined) return undefined;
  const { OtlpTracing } = await import("./otlp-tracing.ts");
  return new OtlpTracing(address, settings, options);
}
