import { redisNow } from "@berth/ledger";
import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { fleetTest as test } from "../support/gateway.ts";

const exec = (command: string, more: object = {}) => ({
  tenant: "acme",
  request: { kind: "exec", command },
  ...more,
});

/** For a process that takes the time for another one. */
function clockOffBy(ms: number): string {
  return `--import=data:text/javascript,${encodeURIComponent(`const now = Date.now; Date.now = () => now() + ${ms};`)}`;
}

describe("fleet over HTTP", () => {
  test("/readyz is 200 when Redis answers and a worker lives, and has the reason when not", async ({
    fleet,
    gateways,
  }) => {
    const gateway = await gateways.start();
    expect((await gateway.call("GET", "/healthz", { key: undefined })).status).toBe(200);
    expect(await gateway.call("GET", "/readyz", { key: undefined })).toMatchObject({
      status: 503,
      body: { ready: false, reasons: ["no worker is alive"] },
    });
    await fleet.worker("worker-1");
    await expect
      .poll(async () => (await gateway.call("GET", "/readyz")).body)
      .toEqual({ ready: true, reasons: [] });
    fleet.redis.freeze();
    expect((await gateway.call("GET", "/readyz")).body.reasons).toEqual(["Redis does not answer"]);
    expect((await gateway.call("GET", "/healthz")).status).toBe(200);
    fleet.redis.thaw();
    await expect.poll(async () => (await gateway.call("GET", "/readyz")).status).toBe(200);
  });

  test("/readyz judges workers by Redis' clock, with any error of the gateway's clock", async ({
    fleet,
    gateways,
  }) => {
    const redis = fleet.redis.connect();
    const beat = async (agoMs: number) =>
      redis.zadd(redisKeys.workers, (await redisNow(redis)) - agoMs, "worker-1");
    const ahead = await gateways.start({ NODE_OPTIONS: clockOffBy(3_600_000) });
    const afterBeat = async () => {
      await beat(0);
      return (await ahead.call("GET", "/readyz")).body;
    };
    await expect.poll(afterBeat).toEqual({ ready: true, reasons: [] });
    const behind = await gateways.start({ NODE_OPTIONS: clockOffBy(-3_600_000) });
    await beat(60_000);
    expect((await behind.call("GET", "/readyz")).body.reasons).toEqual(["no worker is alive"]);
  });

  test.for(["info", "debug"])(
    "what machines ask every few seconds is not in the log at info: %s",
    async (level, { gateways }) => {
      const gateway = await gateways.start({ BERTH_LOG: level });
      for (const path of ["/healthz", "/readyz", "/metrics", "/v1/fleet/scale"])
        await gateway.call("GET", path);
      const routes = () =>
        gateway.log
          .split("\n")
          .filter((line) => line.includes("http.answered"))
          .map((line) => JSON.parse(line).route);
      await expect.poll(routes).toContain("/v1/fleet/scale");
      const probes = ["/healthz", "/readyz", "/metrics"];
      expect(routes()).toEqual([...(level === "debug" ? probes : []), "/v1/fleet/scale"]);
    },
  );

  test("the fleet over HTTP shows workers, sandboxes and what an autoscaler needs, and drains a worker", async ({
    fleet,
    gateways,
  }) => {
    const worker = await fleet.worker("worker-1");
    const gateway = await gateways.start();
    await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("true") });
    await expect
      .poll(async () => (await gateway.call("GET", "/v1/fleet/workers")).body.workers)
      .toMatchObject([{ id: "worker-1", held: 1, health: "ok" }]);
    expect((await gateway.call("GET", "/v1/fleet/sandboxes")).body.sandboxes).toMatchObject([
      { key: "acme", tenant: "acme", worker: "worker-1", unfinished: 0 },
    ]);
    expect((await gateway.call("GET", "/v1/fleet/scale")).body).toMatchObject({
      waitingSandboxes: 0,
      oldestWaitMs: 0,
      workers: 1,
    });
    expect((await gateway.call("POST", "/v1/fleet/workers/unknown/drain")).status).toBe(404);
    expect((await gateway.call("POST", "/v1/fleet/workers/worker-1/drain")).status).toBe(202);
    expect(await worker.ended()).toBe(0);
  });

  test("the fleet over HTTP pauses, resumes and destroys a tenant, and reports what it uses", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("echo kept > file") });
    expect((await gateway.call("POST", "/v1/tenants/acme/pause")).status).toBe(204);
    const { id } = (await gateway.call("POST", "/v1/jobs?wait=1", { body: exec("cat file") })).body;
    expect((await gateway.call("GET", "/v1/tenants/acme")).body).toMatchObject({
      paused: true,
      unfinished: 1,
    });
    expect((await gateway.call("GET", `/v1/jobs/${id}/why`)).body.reasons[0]).toContain("paused");
    expect((await gateway.call("POST", "/v1/tenants/acme/resume")).status).toBe(204);
    expect((await gateway.call("GET", `/v1/jobs/${id}?wait=30`)).body.result.value.stdout).toBe("kept\n");
    const { jobs } = (await gateway.call("DELETE", "/v1/tenants/acme")).body;
    expect(jobs).toHaveLength(1);
    expect((await gateway.call("GET", `/v1/jobs/${jobs[0]}?wait=30`)).body.result.outcome.kind).toBe("done");
    const gone = await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("ls") });
    expect(gone.body.result.value.stdout).toBe("");
  });

  test("the fleet over HTTP runs a delayed job when it is due, and a schedule again and again", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const later = (await gateway.call("POST", "/v1/jobs", { body: exec("date +%s%3N", { delayMs: 1_500 }) }))
      .body;
    expect(later.state).toBe("scheduled");
    const ran = (await gateway.call("GET", `/v1/jobs/${later.id}?wait=30`)).body;
    expect(Number(ran.result.value.stdout) - later.acceptedAtMs).toBeGreaterThanOrEqual(1_400);
    const both = await gateway.call("POST", "/v1/jobs", { body: exec("true", { delayMs: 1, runAtMs: 2 }) });
    expect(both.status).toBe(400);
    const body = { everyMs: 500, order: exec("echo tick >> ticks") };
    const made = await gateway.call("PUT", "/v1/schedules/often", { body });
    expect(made.body).toMatchObject({ id: "often", tenant: "acme", runs: 0 });
    await expect
      .poll(async () => (await gateway.call("GET", "/v1/schedules/often")).body.runs)
      .toBeGreaterThan(2);
    expect((await gateway.call("POST", "/v1/schedules/often/pause")).body.paused).toBe(true);
    expect((await gateway.call("DELETE", "/v1/schedules/often")).status).toBe(204);
    expect((await gateway.call("GET", "/v1/schedules/often")).status).toBe(404);
    const bad = await gateway.call("PUT", "/v1/schedules/bad", {
      body: { cron: "99 * * * *", order: exec("true") },
    });
    expect(bad.status).toBe(400);
  });

  test("the fleet over HTTP counts what it does, without a tenant's name unless asked for", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start({ BERTH_GATEWAY_METRICS_LISTEN: "127.0.0.1:0" });
    const named = await gateways.start({ BERTH_METRICS_TENANTS: "2", BERTH_GATEWAY_METRICS: "open" });
    await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("true") });
    await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("exit 1") });
    const read = async () =>
      `${(await gateway.call("GET", "/metrics")).body}${(await named.call("GET", "/metrics", { key: undefined })).body}`;
    await expect.poll(read).toContain('berth_jobs_finished_total{outcome="failed"} 1');
    const text = (await gateway.call("GET", "/metrics")).body;
    expect(text).toContain('berth_http_requests_total{method="POST",route="/v1/jobs",status="200"} 2');
    expect(text).toContain("berth_workers 1");
    expect(text).toMatch(/^berth_build_info\{app="gateway",version="[\d.]+"\} 1$/m);
    expect(text).toMatch(/^process_resident_memory_bytes \d+$/m);
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds [\d.e+-]+$/m);
    expect(text).not.toContain("acme");
    expect((await gateway.call("GET", "/metrics", { key: undefined })).status).toBe(401);
    // At an address of their own they need none, and nothing else is there.
    const [, open = ""] = /"metrics":"([^"]+)"/.exec(gateway.log) ?? [];
    expect(await (await fetch(open)).text()).toContain("berth_workers 1");
    expect((await fetch(new URL("/v1/jobs", open))).status).toBe(404);
    await gateway.stop();
    await expect(fetch(open)).rejects.toThrow();
  });
});
