import { openTracing, type Tracing, type TracingOptions, tracingSettings } from "@berth/service";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Collector } from "../../../test/support/collector.ts";

const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
const past = { name: "one", kind: "internal", startMs: 1_700_000_000_000, endMs: 1_700_000_000_250 } as const;

async function open(env: Record<string, string>, options: Partial<TracingOptions> = {}): Promise<Tracing> {
  const settings = z.object(tracingSettings).parse(env);
  const defaults = { service: "berth-test", attributes: { "service.version": "9" }, onOutage: () => {} };
  const tracing = await openTracing(settings, { ...defaults, ...options });
  if (!tracing) expect.fail("tracing is off");
  return tracing;
}

describe("tracing", () => {
  test("tracing is off without a collector, and when it is disabled", async () => {
    const options = { service: "berth-test", attributes: {}, onOutage: () => {} };
    const set = (env: Record<string, string>) => openTracing(z.object(tracingSettings).parse(env), options);
    expect(await set({})).toBeUndefined();
    const address = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" };
    expect(await set({ ...address, OTEL_SDK_DISABLED: "TRUE" })).toBeUndefined();
  });

  test("an invalid address and an unknown sampler are refused", () => {
    const { error } = z
      .object(tracingSettings)
      .safeParse({ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318", OTEL_TRACES_SAMPLER: "some" });
    const paths = error?.issues.map(({ path }) => path.join("."));
    expect(paths).toEqual(["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER"]);
  });

  test("a finished span is exported with its times, its parent and its child spans", async () => {
    await using collector = await Collector.start();
    const tracing = await open(collector.env);
    const inside = [{ ...past, name: "two", endMs: 1_700_000_000_100, error: "lost" }];
    tracing.record({ ...past, attributes: { "berth.attempt": 2 }, inside }, { traceparent: `${caller}-01` });
    await tracing.stop();
    const [one, two] = [collector.named("one"), collector.named("two")];
    expect(one).toMatchObject({
      traceId: "0af7651916cd43dd8448eb211c80319c",
      parentId: "b7ad6b7169203331",
      startNs: 1_700_000_000_000_000_000n,
      endNs: 1_700_000_000_250_000_000n,
      attributes: { "berth.attempt": 2 },
      error: undefined,
    });
    expect(two).toMatchObject({ traceId: one.traceId, parentId: one.spanId, error: "lost" });
  });

  test("the standard variables name the process, its collector's headers and its path", async () => {
    await using collector = await Collector.start();
    const tracing = await open({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
      OTEL_EXPORTER_OTLP_HEADERS: "x-key=a%20b,x-other=c",
      OTEL_SERVICE_NAME: "mine",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test,service.name=not-this",
    });
    tracing.record(past, undefined);
    await tracing.stop();
    expect(collector.lastHeaders).toMatchObject({ "x-key": "a b", "x-other": "c" });
    expect(collector.named("one").resource).toMatchObject({
      "service.name": "mine",
      "service.version": "9",
      "deployment.environment": "test",
    });
  });

  test.for([
    { sampler: "parentbased_always_on", flag: "00", kept: false },
    { sampler: "parentbased_always_on", flag: "01", kept: true },
    { sampler: "parentbased_always_on", flag: undefined, kept: true },
    { sampler: "parentbased_always_off", flag: undefined, kept: false },
    { sampler: "parentbased_always_off", flag: "01", kept: true },
    { sampler: "parentbased_traceidratio", flag: undefined, kept: false },
    { sampler: "traceidratio", flag: "01", kept: false },
    { sampler: "always_off", flag: "01", kept: false },
    { sampler: "always_on", flag: "00", kept: true },
  ])(
    "the sampler $sampler, with a caller's flag $flag, decides that kept is $kept, and later processes get that decision",
    async (one) => {
      const { sampler, flag, kept } = one;
      await using collector = await Collector.start();
      const env = { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: "0" };
      const tracing = await open({ ...collector.env, ...env });
      const parent = flag === undefined ? undefined : { traceparent: `${caller}-${flag}`, tracestate: "v=1" };
      const span = tracing.begin({ name: "begun", kind: "server", parent });
      span.end();
      span.end();
      tracing.record({ ...past, inside: [past] }, parent);
      await tracing.stop();
      expect(collector.names).toEqual(kept ? ["begun", "one", "one"] : []);
      expect(span.context.traceparent.endsWith(kept ? "-01" : "-00")).toBe(true);
      expect(span.context.tracestate).toBe(parent?.tracestate);
    },
  );

  test("a span whose parent is no valid trace context starts a new trace", async () => {
    await using collector = await Collector.start();
    const tracing = await open(collector.env);
    tracing.record(past, { traceparent: "rubbish", tracestate: "x".repeat(1_024) });
    await tracing.stop();
    expect(collector.named("one").parentId).toBe("");
  });

  test("an outage is reported once, however many batches it takes, and its end once", async () => {
    await using collector = await Collector.start();
    const outages: string[] = [];
    const onOutage: TracingOptions["onOutage"] = ({ state, detail }) => outages.push(`${state} ${detail}`);
    const tracing = await open(collector.env, { onOutage });
    // Refused for good: not tried again, so that each batch is one request.
    const batches = async (count: number) => {
      const until = collector.requests + count;
      for (let index = 0; index < 512 * count; index++) tracing.record(past, undefined);
      await expect.poll(() => collector.requests).toBe(until);
    };
    collector.answers = 400;
    await batches(3);
    await expect.poll(() => outages).toEqual(["lost 400 Bad Request"]);
    collector.answers = 200;
    await batches(2);
    await tracing.stop();
    expect(outages).toEqual(["lost 400 Bad Request", "back "]);
    expect(collector.spans).toHaveLength(1_024);
  });

  test("a collector that never answers blocks no caller, and keeps nothing beyond the bound", async () => {
    await using collector = await Collector.start();
    collector.answers = "never";
    const tracing = await open(collector.env);
    const before = performance.now();
    for (let index = 0; index < 10_000; index++) tracing.record(past, undefined);
    await expect.poll(() => collector.requests).toBe(1);
    const stopping = performance.now();
    await tracing.stop();
    expect(performance.now() - stopping).toBeLessThan(4_000);
    expect(stopping - before).toBeLessThan(30_000);
    // The one under way, and the 2,048 that wait: four more of 512.
    expect(collector.requests).toBeLessThanOrEqual(5);
  });
});
