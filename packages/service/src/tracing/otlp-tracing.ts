import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { parseKeyPairsIntoRecord, W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { defaultResource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { within } from "../within.ts";
import type { TracingOptions } from "./open-tracing.ts";
import { OutageExporter } from "./outage-exporter.ts";
import type { TracingSettings } from "./settings.ts";
import type { OpenSpan, PastSpan, SpanEnd, SpanStart, TraceContext, Tracing } from "./tracing.ts";

/** A collector that does not answer must not delay a process's exit. */
const shutdownMs = 2_000;

const kinds = {
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
};
const w3c = new W3CTraceContextPropagator();

/**
 * Sends spans over OTLP, in batches of 512 or every five seconds. Queues at most 2,048; further spans are dropped while the
 * collector is away. Changes nothing global, so other users of OpenTelemetry's API in the process are not affected.
 */
export class OtlpTracing implements Tracing {
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;

  constructor(address: string, settings: TracingSettings, options: TracingOptions) {
    const headers = parseKeyPairsIntoRecord(settings.OTEL_EXPORTER_OTLP_HEADERS);
    const exporter = new OTLPTraceExporter({ url: address, headers });
    this.#provider = new TracerProvider({
      resource: resourceOf(settings, options),
      sampler: samplerOf(settings),
      spanProcessors: [new BatchSpanProcessor({ exporter: new OutageExporter(exporter, options.onOutage) })],
    });
    this.#tracer = this.#provider.getTracer("berth");
  }

  begin({ name, kind, parent, attributes = {} }: SpanStart): OpenSpan {
    const outside = contextOf(parent);
    const span = this.#tracer.startSpan(name, { kind: kinds[kind], attributes }, outside);
    let open = true;
    return {
      context: carried(trace.setSpan(outside, span)),
      end: (end = {}) => {
        if (open) finish(span, end);
        open = false;
      },
    };
  }

  record(span: PastSpan, parent: TraceContext | undefined): void {
    this.#record(span, contextOf(parent));
  }

  async stop(): Promise<void> {
    await within(shutdownMs, this.#provider.shutdown());
  }

  #record(past: PastSpan, outside: Context): void {
    const { name, kind, attributes = {}, startMs, endMs, error, inside = [] } = past;
    const span = this.#tracer.startSpan(name, { kind: kinds[kind], attributes, startTime: startMs }, outside);
    if (!span.isRecording()) return;
    for (const one of inside) this.#record(one, trace.setSpan(outside, span));
    finish(span, { error }, endMs);
  }
}

function finish(span: Span, { attributes = {}, error }: SpanEnd, endMs?: number): void {
  span.setAttributes(attributes);
  if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
  span.end(endMs);
}

function contextOf(parent: TraceContext | undefined): Context {
  return parent ? w3c.extract(ROOT_CONTEXT, parent, defaultTextMapGetter) : ROOT_CONTEXT;
}

function carried(context: Context): TraceContext {
  const carrier: Record<string, string> = {};
  w3c.inject(context, carrier, defaultTextMapSetter);
  const { traceparent = "", tracestate } = carrier;
  return { traceparent, ...(tracestate ? { tracestate } : {}) };
}

function resourceOf(settings: TracingSettings, { service, attributes }: TracingOptions) {
  const more = parseKeyPairsIntoRecord(settings.OTEL_RESOURCE_ATTRIBUTES);
  const name = settings.OTEL_SERVICE_NAME ?? more["service.name"] ?? service;
  return defaultResource().merge(resourceFromAttributes({ ...attributes, ...more, "service.name": name }));
}

function samplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: share }: TracingSettings): Sampler {
  const [last = ""] = name.split("parentbased_").slice(-1);
  const root = rootSampler(last, share);
  return name.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}

function rootSampler(name: string, share: number): Sampler {
  if (name === "traceidratio") return new TraceIdRatioBasedSampler(share);
  return name === "always_off" ? new AlwaysOffSampler() : new AlwaysOnSampler();
}
