import { z } from "zod";

const address = z.url({ protocol: /^https?$/, error: "an address that begins with http:// or https://" });

/** OpenTelemetry's own variable names, for an app's schema. Without an address nothing is traced or loaded. */
export const tracingSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: address
    .optional()
    .describe("a collector for traces, such as http://127.0.0.1:4318 (OTLP over HTTP); none: no traces"),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address
    .optional()
    .describe("the same with its path, such as http://127.0.0.1:4318/v1/traces; wins over the other"),
  OTEL_EXPORTER_OTLP_HEADERS: z
    .string()
    .optional()
    .describe("headers for the collector, `name=value` separated by commas, values percent-encoded"),
  OTEL_SERVICE_NAME: z
    .string()
    .optional()
    .describe("the app's name in traces; when absent `berth-` and the app, such as berth-worker"),
  OTEL_RESOURCE_ATTRIBUTES: z
    .string()
    .optional()
    .describe("more about the app in traces, `name=value` separated by commas"),
  OTEL_TRACES_SAMPLER: z
    .enum([
      "always_on",
      "always_off",
      "traceidratio",
      "parentbased_always_on",
      "parentbased_always_off",
      "parentbased_traceidratio",
    ])
    .default("parentbased_always_on")
    .describe("which traces are kept; parentbased: those of callers as the caller decided"),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe("share of the traces that a ratio keeps"),
  OTEL_SDK_DISABLED: z
    .string()
    .default("false")
    .transform((text) => text.toLowerCase() === "true")
    .describe("true: no traces, even if a collector is set"),
};

export type TracingSettings = z.infer<z.ZodObject<typeof tracingSettings>>;

/** Picks these settings from everything that an app's schema read. */
export function tracingOf(read: TracingSettings): TracingSettings {
  return Object.fromEntries(
    Object.entries(read).filter(([name]) => name in tracingSettings),
  ) as TracingSettings;
}

/** Where to send spans; undefined: nowhere. */
export function tracesAddress(settings: TracingSettings): string | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: whole } = settings;
  if (settings.OTEL_SDK_DISABLED) return undefined;
  return whole ?? (base && `${base.replace(/\/+$/, "")}/v1/traces`);
}
