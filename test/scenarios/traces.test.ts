import { describe, expect } from "vitest";
import { Collector } from "../support/collector.ts";
import { busybox, type TestFleet } from "../support/fleet.ts";
import { type TestGateways, fleetTest as test } from "../support/gateway.ts";
import type { SentSpan } from "../support/otlp.ts";
import { listen } from "../support/sse.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const callerId = "b7ad6b7169203331";
const traceparent = `00-${traceId}-${callerId}-01`;
const exec = (command: string, tenant = "acme") => ({ tenant, request: { kind: "exec", command } });

/** A worker and a gateway that send their spans there. */
async function traced(fleet: TestFleet, gateways: TestGateways, collector: Collector) {
  const worker = await fleet.worker("worker-1", { ...busybox, ...collector.env });
  return { worker, gateway: await gateways.start(collector.env) };
}

/** The trace context that a job was put in its queue with. */
async function carriedBy(fleet: TestFleet, jobId: string): Promise<string> {
  const data = await fleet.redis.connect().hget(`berth:{acme}:jobs:${jobId}`, "data");
  return JSON.parse(data ?? "{}").trace?.traceparent ?? "none";
}

const contextOf = ({ traceId: trace, spanId }: SentSpan) => `00-${trace}-${spanId}-01`;

/** Each stage of an attempt, in milliseconds after the first began. */
function timeline(spans: readonly SentSpan[]): { from: number; to: number }[] {
  const first = spans[0]?.startNs ?? 0n;
  const ms = (at: bigint) => Number(at - first) / 1e6;
  return spans.map(({ startNs, endNs }) => ({ from: ms(startNs), to: ms(endNs) }));
}

describe("traces", () => {
  test("one trace leads from the caller over HTTP and through the queue to the command", async ({
    fleet,
    gateways,
  }) => {
    await using collector = await Collector.start();
    const { worker, gateway } = await traced(fleet, gateways, collector);
    const { body } = await gateway.call("POST", "/v1/jobs?wait=60", {
      body: exec("echo hush-hush; sleep 0.2; exit 3"),
      headers: { traceparent, tracestate: "vendor=1" },
    });
    expect(body.result.outcome).toEqual({ kind: "exited", code: 3 });
    const again = await gateway.call("POST", "/v1/jobs?wait=60", { body: exec("true") });
    // Nothing waits for the next batch: what is left is sent when they stop.
    expect(await gateway.stop()).toBe(0);
    expect(await worker.stopped(30_000)).toEqual([]);

    const ofCaller = collector.spans.filter((span) => span.traceId === traceId);
    const named = (name: string): SentSpan => {
      const found = ofCaller.find((span) => span.name === name);
      if (!found) expect.fail(`no ${name} among ${collector.names.join(", ")}`);
      return found;
    };
    const [request, enqueue, job] = ["POST /v1/jobs", "berth.enqueue exec", "berth.job exec"].map(named);
    const stages = ["berth.queue", "berth.sandbox.start", "berth.run", "berth.publish"].map(named);
    expect(ofCaller).toHaveLength(7);
    expect(request).toMatchObject({ kind: "server", parentId: callerId, error: undefined });
    expect(enqueue).toMatchObject({ kind: "producer", parentId: request?.spanId });
    expect(job).toMatchObject({ kind: "consumer", parentId: enqueue?.spanId, error: undefined });
    for (const stage of stages) expect(stage).toMatchObject({ kind: "internal", parentId: job?.spanId });
    expect(request?.attributes).toEqual({
      "http.request.method": "POST",
      "http.route": "/v1/jobs",
      "http.response.status_code": 200,
      "url.scheme": "http",
      "berth.request.id": expect.any(String),
    });
    expect(request?.resource).toMatchObject({ "service.name": "berth-gateway" });
    expect(job?.resource).toMatchObject({
      "service.name": "berth-worker",
      "service.instance.id": "worker-1",
    });
    expect(job?.attributes).toEqual({
      "berth.job.id": body.id,
      "berth.kind": "exec",
      "berth.tenant": "acme",
      "berth.sandbox.key": "acme",
      "berth.sandbox.cold": true,
      "berth.worker.id": "worker-1",
      "berth.epoch": expect.any(Number),
      "berth.attempt": 1,
      "berth.outcome": "exited",
      "berth.exit_code": 3,
    });

    const [whole, ...parts] = timeline([job as SentSpan, ...stages]);
    expect(request?.startNs).toBeLessThanOrEqual(enqueue?.startNs ?? 0n);
    expect(enqueue?.startNs).toBeLessThanOrEqual(job?.startNs ?? 0n);
    expect(whole?.from).toBe(parts[0]?.from);
    for (const [index, part] of parts.entries()) {
      expect(part.to).toBeGreaterThanOrEqual(part.from);
      expect(parts[index + 1]?.from ?? whole?.to).toBeCloseTo(part.to, 2);
    }
    const run = parts[2];
    expect((run?.to ?? 0) - (run?.from ?? 0)).toBeGreaterThanOrEqual(200);

    // The second found the sandbox warm, and has a trace of its own.
    const second = collector.spans.filter((span) => span.traceId !== traceId);
    expect(second.map(({ name }) => name).sort()).toEqual(
      [
        "POST /v1/jobs",
        "berth.enqueue exec",
        "berth.job exec",
        "berth.publish",
        "berth.queue",
        "berth.run",
      ].sort(),
    );
    const warm = second.find(({ name }) => name === "berth.job exec");
    expect(warm?.attributes).toMatchObject({ "berth.job.id": again.body.id, "berth.sandbox.cold": false });
    expect(new Set(second.map((span) => span.traceId)).size).toBe(1);
    for (const word of ["hush-hush", "wait=60"]) expect(collector.bytes.includes(word)).toBe(false);
    const finished = worker.log.split("\n").find((line) => line.includes(body.id)) ?? "{}";
    expect(JSON.parse(finished).trace).toBe(contextOf(enqueue as SentSpan));
    expect(worker.log).not.toContain("vendor=1");
  });

  test("a batch is one span, and its jobs are beneath it", async ({ fleet, gateways }) => {
    await using collector = await Collector.start();
    const gateway = await gateways.start(collector.env);
    const jobs = Array.from({ length: 200 }, () => exec("true"));
    const { body } = await gateway.call("POST", "/v1/batches", { body: { jobs }, headers: { traceparent } });
    const many = await gateway.call("POST", "/v1/jobs", { body: jobs.slice(0, 3), headers: { traceparent } });
    const [inBatch, inList] = [`${body.id}-7`, many.body[1].id];
    const carried = [await carriedBy(fleet, inBatch), await carriedBy(fleet, inList)];
    await gateway.stop();
    expect(collector.names.sort()).toEqual(["POST /v1/batches", "POST /v1/jobs"]);
    expect(carried).toEqual(
      ["POST /v1/batches", "POST /v1/jobs"].map((name) => contextOf(collector.named(name))),
    );
  });

  test("probes, pages and requests without a key have no spans, a refusal has one, an event stream has one once it is open", async ({
    gateways,
  }) => {
    await using collector = await Collector.start();
    const gateway = await gateways.start({ ...collector.env, BERTH_GATEWAY_HEARTBEAT_MS: "500" });
    const { body } = await gateway.call("POST", "/v1/jobs", { body: exec("true") });
    for (const path of [
      "/healthz",
      "/readyz",
      "/metrics",
      "/docs",
      "/openapi.json",
      "/board/",
      "/v1/no-such",
    ])
      await (await gateway.fetch("GET", path)).text();
    await gateway.call("GET", "/v1/jobs", { key: "no-key-of-ours" });
    await gateway.call("POST", "/v1/jobs", { body: exec("true"), headers: { traceparent: "zz" } });
    const events = `/v1/jobs/${body.id}/events`;
    // Sent while it is open: it ends with the test, not before.
    await listen(gateway, events, {}, () => collector.names.includes("GET /v1/jobs/:id/events"));
    await gateway.stop();
    const statuses = collector.spans
      .filter(({ kind }) => kind === "server")
      .map(({ name, attributes, error }) => `${name} ${attributes["http.response.status_code"]} ${error}`);
    expect(statuses.sort()).toEqual([
      "GET /v1/jobs 401 undefined",
      "GET /v1/jobs/:id/events 200 undefined",
      "POST /v1/jobs 202 undefined",
      "POST /v1/jobs 400 undefined",
    ]);
  });

  test("a client's own trace has its job's spans, and a caller that does not sample has none", async ({
    fleet,
    gateways,
  }) => {
    await using collector = await Collector.start();
    const { worker, gateway } = await traced(fleet, gateways, collector);
    const notSampled = { traceparent: `00-${"1".repeat(32)}-${callerId}-00` };
    const acme = fleet.client().tenant("acme");
    const unseen = await gateway.call("POST", "/v1/jobs?wait=60", {
      body: exec("true"),
      headers: notSampled,
    });
    expect(unseen.body.state).toBe("finished");
    expect(await carriedBy(fleet, unseen.body.id)).toMatch(
      new RegExp(`^00-${"1".repeat(32)}-[0-9a-f]{16}-00$`),
    );
    await acme.exec("true", { trace: notSampled });
    await acme.exec("true", { trace: { traceparent } });
    await gateway.stop();
    await worker.stopped(30_000);
    expect(new Set(collector.spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
    expect(collector.named("berth.job exec").parentId).toBe(callerId);
  });

  test("an attempt that another follows has its spans, too", async ({ fleet }) => {
    await using collector = await Collector.start();
    const worker = await fleet.worker("worker-1", { ...busybox, ...collector.env });
    const retry = { attempts: 2, backoffMs: 10 };
    const once = "test -e been || { touch been; exit 1; }";
    const { outcome } = await fleet.client().tenant("acme").exec(once, { retry, trace: { traceparent } });
    expect(outcome).toEqual({ kind: "exited", code: 0 });
    await worker.stopped(30_000);
    const attempts = collector.spans.filter(({ kind }) => kind === "consumer");
    const summary = attempts.map(({ parentId, attributes, error }) => ({
      parentId,
      attempt: attributes["berth.attempt"],
      code: attributes["berth.exit_code"],
      error,
    }));
    expect(summary).toEqual([
      { parentId: callerId, attempt: 1, code: 1, error: undefined },
      { parentId: callerId, attempt: 2, code: 0, error: undefined },
    ]);
  });

  test.for(["refuses connections", "never answers"])(
    "a collector that %s costs a job nothing, and no process waits for it at the end",
    async (how, { fleet, gateways }) => {
      await using collector = await Collector.start();
      collector.answers = "never";
      const env =
        how === "never answers" ? collector.env : { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" };
      const worker = await fleet.worker("worker-1", { ...busybox, ...env });
      const gateway = await gateways.start(env);
      const run = () => gateway.call("POST", "/v1/jobs?wait=60", { body: exec("true") });
      await run();
      const times: number[] = [];
      for (let index = 0; index < 20; index++) {
        const before = performance.now();
        expect((await run()).body.result.outcome).toEqual({ kind: "exited", code: 0 });
        times.push(performance.now() - before);
      }
      // A warm one takes milliseconds; each try of the exporter takes a second or ten.
      expect(times.sort((a, b) => a - b)[10]).toBeLessThan(1_000);
      // A container to remove is no part of what this measures.
      await fleet.client().tenant("acme").destroy();
      const leave = async (gone: Promise<unknown>) => {
        const before = performance.now();
        await gone;
        return performance.now() - before;
      };
      const took = await Promise.all([leave(gateway.stop()), leave(worker.stopped(30_000))]);
      for (const ms of took) expect(ms).toBeLessThan(8_000);
      expect(worker.process.exitCode).toBe(0);
      expect(gateway.process.exitCode).toBe(0);
      for (const { log } of [worker, gateway] as { log: string }[])
        expect(log.split("traces.lost").length - 1).toBeLessThanOrEqual(1);
    },
  );
});
