import { dayName, dayNumber } from "@berth/protocol";
import { expect } from "vitest";
import { CliRun } from "../support/cli.ts";
import { busybox } from "../support/fleet.ts";
import { fleetTest as test } from "../support/gateway.ts";

test("what jobs used is in their results, and by tenant and day in the client, over HTTP and on the command line", async ({
  fleet,
  gateways,
}) => {
  const worker = await fleet.worker("worker-1", { ...busybox, BERTH_WORKER_METRICS: "127.0.0.1:0" });
  const berth = fleet.client();
  const acme = berth.tenant("acme");
  const ran = await acme.exec("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; head -c 5000 /dev/zero", {
    keptBytes: 1_000,
  });
  expect(ran.timing.cpuMs).toBeGreaterThan(10);
  expect(ran.usage?.outBytes, "written, also what was not kept").toBe(5_000);
  expect(ran.usage?.peakMemoryBytes).toBeGreaterThan(100_000);
  const written = await acme.write("large", "x".repeat(400_000));
  expect(written.usage, "its request was staged").toMatchObject({ inBytes: expect.any(Number), outBytes: 0 });
  expect(written.usage?.inBytes).toBeGreaterThan(400_000);
  const read = await acme.read("large");
  expect(read.usage?.outBytes).toBe(400_000);
  const steps = await acme.steps([
    { kind: "exec", command: "echo one" },
    { kind: "exec", command: "echo three; exit 1", artifacts: [] },
  ]);
  expect(steps.usage?.outBytes).toBe(10);
  await berth.tenant("evil").exec("echo hi", { scope: "shared" });

  const { total, days } = await acme.usage();
  expect(total).toMatchObject({ jobs: 4, failed: 1 });
  expect(total.outBytes).toBe(405_010);
  expect(total.inBytes).toBeGreaterThan(400_000);
  expect(total.cpuSeconds).toBeCloseTo((ran.timing.cpuMs + steps.timing.cpuMs) / 1_000, 4);
  expect(days).toHaveLength(1);

  const gateway = await gateways.start();
  const made = await gateway.call("POST", "/v1/keys", {
    body: { role: "tenant", tenant: "acme", name: "k" },
  });
  const key = made.body.token;
  const today = dayName(dayNumber(Date.now()));
  const over = await gateway.call("GET", `/v1/tenants/acme/usage?from=${today}`, { key });
  expect(over.body).toMatchObject({ tenant: "acme", total, days });
  expect((await gateway.fetch("GET", "/v1/tenants/evil/usage", { key })).status).toBe(403);
  expect((await gateway.fetch("GET", "/v1/usage", { key })).status).toBe(403);
  const all = (await gateway.call("GET", "/v1/usage")).body;
  expect(all.tenants.map(({ tenant }: { tenant: string }) => tenant)).toEqual(["acme", "evil"]);
  expect(all.tenants[1]).toMatchObject({ jobs: 1, outBytes: 3 });
  const bad = await gateway.call("GET", "/v1/tenants/acme/usage?from=2020-01-01", { key });
  expect(bad.status).toBe(400);
  expect(JSON.stringify(bad.body)).toContain("at most 400");

  for (const env of [{ REDIS_URL: fleet.redis.url }, { BERTH_URL: gateway.url, BERTH_KEY: key }]) {
    const shown = await new CliRun(["usage", "acme", "--json"], { env }).end();
    expect(shown.stderr).toBe("");
    expect(JSON.parse(shown.stdout)).toMatchObject({ tenant: "acme", total });
  }
  const table = await new CliRun(["usage"], { env: { REDIS_URL: fleet.redis.url } }).end();
  expect(table.stdout).toMatch(/^TENANT +JOBS +FAILED +CPU +WALL +MEMORY +IN +OUT$/m);
  expect(table.stdout).toMatch(/^acme +4 +1 +\d/m);

  const [, url = ""] = /"metrics":"([^"]+)"/.exec(worker.log) ?? [];
  const text = await (await fetch(url)).text();
  expect(text).toMatch(/^berth_job_out_bytes_total 405013$/m);
  expect(text).toMatch(/^berth_job_cpu_seconds_total 0\.\d+$/m);
  expect(text).toMatch(/^berth_job_peak_memory_bytes_bucket\{le="\+Inf"\} [1-9]\d*$/m);
  expect(text).toMatch(/^berth_job_peak_memory_bytes_sum [1-9]\d+$/m);
  expect(text).not.toContain("acme");
});
