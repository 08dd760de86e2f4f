import { describe, expect } from "vitest";
import { busybox } from "../support/fleet.ts";
import { fleetTest, type TestGateway, test } from "../support/gateway.ts";

const exec = { request: { kind: "exec", command: "true" } };
const hourly = { everyMs: 3_600_000, order: exec };

async function tenantKeys(gateway: TestGateway, ...tenants: string[]): Promise<string[]> {
  const make = async (tenant: string) =>
    (await gateway.call("POST", "/v1/keys", { body: { role: "tenant", tenant, name: tenant } })).body.token;
  return Promise.all(tenants.map(make));
}

describe("ids of one tenant's jobs and schedules", () => {
  test("the ids of one tenant's jobs and schedules reveal nothing to another tenant: an id in use is accepted like a fresh one, and is another job", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const [acme = "", evil = ""] = await tenantKeys(gateway, "acme", "evil");
    const post = (key: string, body: object) => gateway.call("POST", "/v1/jobs", { key, body });
    const theirs = await post(acme, { ...exec, id: "build-1" });
    expect(theirs).toMatchObject({ status: 202, body: { id: "build-1", tenant: "acme" } });
    // The same tenant's same id is the same job.
    expect((await post(acme, { ...exec, id: "build-1" })).body.acceptedAtMs).toBe(theirs.body.acceptedAtMs);
    // One that an orchestrator made through Redis or with an admin key, in acme's name.
    await gateway.call("POST", "/v1/jobs", { body: { ...exec, tenant: "acme", id: "run-7" } });
    const taken = [await post(evil, { ...exec, id: "build-1" }), await post(evil, { ...exec, id: "run-7" })];
    const fresh = await post(evil, { ...exec, id: "build-2" });
    for (const { status, headers, body } of taken) {
      expect(status).toBe(fresh.status);
      expect(headers.get("location")).toBe(`/v1/jobs/${body.id}`);
      expect(Object.keys(body)).toEqual(Object.keys(fresh.body));
      expect(body).toMatchObject({ tenant: "evil", state: "waiting" });
    }
    const cancelled = await gateway.call("DELETE", "/v1/jobs/build-1", { key: evil });
    expect(cancelled.body).toMatchObject({ id: "build-1", tenant: "evil", state: "finished" });
    const look = async (key: string) => (await gateway.call("GET", "/v1/jobs/build-1", { key })).body;
    expect(await look(acme)).toMatchObject({ id: "build-1", tenant: "acme", state: "waiting" });
    expect(await look(evil)).toMatchObject({ id: "build-1", tenant: "evil", state: "finished" });
    const why = await gateway.call("GET", "/v1/jobs/build-1/why", { key: acme });
    expect(why.body).toMatchObject({ jobId: "build-1", state: "waiting" });
    // An admin key names both, and the tenant finds what was made for it.
    expect((await gateway.call("GET", "/v1/jobs/acme.build-1")).body.tenant).toBe("acme");
    expect((await gateway.call("GET", "/v1/jobs/evil.build-1")).body.tenant).toBe("evil");
    expect((await gateway.call("GET", "/v1/jobs/run-7", { key: acme })).body.tenant).toBe("acme");
    const listed = (await gateway.call("GET", "/v1/jobs", { key: acme })).body.jobs;
    expect(listed.map(({ id }: { id: string }) => id).sort()).toEqual(["build-1", "run-7"]);
  });

  test("ids of one tenant also name a job whose id the gateway made: sending that id again submits the same job", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const [acme = ""] = await tenantKeys(gateway, "acme");
    const first = await gateway.call("POST", "/v1/jobs", { key: acme, body: exec });
    const again = await gateway.call("POST", "/v1/jobs", { key: acme, body: { ...exec, id: first.body.id } });
    expect(again.body).toEqual(first.body);
    expect((await gateway.call("GET", "/v1/jobs", { key: acme })).body.jobs).toHaveLength(1);
  });

  test("ids of one tenant's jobs and schedules cannot be spelled by another: foreign, reserved and the queue's own names are refused before anything is looked at", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const [acme = "", evil = ""] = await tenantKeys(gateway, "acme", "evil");
    await gateway.call("POST", "/v1/jobs", { key: acme, body: { ...exec, id: "build" } });
    const ids = [
      "acme.build",
      "acme.other",
      "nightly@1731880000000",
      "build-redrive-1",
      "wait",
      "meta",
      "42",
    ];
    for (const id of [...ids, "bat_x-0", "ik_x"]) {
      const answer = await gateway.call("POST", "/v1/jobs", { key: evil, body: { ...exec, id } });
      expect(answer, id).toMatchObject({ status: 400, body: { code: "invalid-request" } });
    }
    await gateway.call("PUT", "/v1/schedules/nightly", { key: acme, body: hourly });
    const spelled = ["acme.nightly", "acme.no-such"].map((id) =>
      gateway.call("PUT", `/v1/schedules/${id}`, { key: evil, body: hourly }),
    );
    const [known, unknown] = await Promise.all(spelled);
    expect(known?.status).toBe(400);
    expect(known?.body.detail).toBe(unknown?.body.detail);
  });

  test("two tenants may each have a schedule called nightly, and neither touches the other's", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const [acme = "", evil = ""] = await tenantKeys(gateway, "acme", "evil");
    const call = (method: string, key: string | undefined, path: string, body?: object) =>
      gateway.call(method, `/v1/schedules/${path}`, { ...(key === undefined ? {} : { key }), body });
    expect((await call("PUT", acme, "nightly", hourly)).body).toMatchObject({
      id: "nightly",
      tenant: "acme",
    });
    expect(await call("PUT", evil, "nightly", { ...hourly, paused: true })).toMatchObject({
      status: 200,
      body: { id: "nightly", tenant: "evil" },
    });
    expect((await call("DELETE", evil, "nightly")).status).toBe(204);
    expect((await call("DELETE", evil, "nightly")).status).toBe(404);
    expect((await call("GET", acme, "nightly")).body).toMatchObject({ tenant: "acme", paused: false });
    expect((await call("POST", acme, "nightly/pause")).body).toMatchObject({ id: "nightly", paused: true });
    expect((await call("GET", undefined, "acme.nightly")).body).toMatchObject({ id: "acme.nightly" });
    // One that an operator made for the tenant is replaced by it, not made a second time.
    const order = { ...exec, tenant: "acme" };
    await call("PUT", undefined, "weekly", { ...hourly, order });
    await call("PUT", acme, "weekly", { ...hourly, paused: true });
    const { schedules } = (await gateway.call("GET", "/v1/schedules")).body;
    const names = schedules.map(({ id, paused }: { id: string; paused: boolean }) => [id, paused]);
    expect(names).toEqual([
      ["acme.nightly", true],
      ["weekly", true],
    ]);
    const foreign = await call("PUT", undefined, "globex.x", { ...hourly, order });
    expect(foreign).toMatchObject({ status: 400, body: { code: "invalid-request" } });
  });

  fleetTest("a tenant cannot use up the ids of another's scheduled runs", async ({ fleet, gateways }) => {
    await fleet.worker("worker-1", busybox);
    const gateway = await gateways.start();
    const [acme = "", evil = ""] = await tenantKeys(gateway, "acme", "evil");
    const startAtMs = Date.now() + 2_000;
    const dues = [0, 1, 2].map((run) => startAtMs + run * 500);
    const suppress = async (key: string, id: string) =>
      (await gateway.call("POST", "/v1/jobs", { key, body: { ...exec, id } })).status;
    // Ids of runs were <schedule>-<due> once. What they are now, no tenant can choose.
    for (const due of dues) {
      expect(await suppress(evil, `nightly-${due}`)).toBe(202);
      expect(await suppress(evil, `nightly@${due}`)).toBe(400);
      expect(await suppress(acme, `nightly@${due}`)).toBe(400);
    }
    const order = { request: { kind: "exec", command: "echo ran >> runs" } };
    const beat = { everyMs: 500, startAtMs, maxRuns: dues.length, catchUp: "all", order };
    const put = await gateway.call("PUT", "/v1/schedules/nightly", { key: acme, body: beat });
    expect(put.status).toBe(200);
    const found = async () =>
      await Promise.all(
        dues.map(async (due) => {
          const { body } = await gateway.call("GET", `/v1/jobs/nightly@${due}`, { key: acme });
          return [body.id, body.tenant, body.result?.outcome];
        }),
      );
    const ran = dues.map((due) => [`nightly@${due}`, "acme", { kind: "exited", code: 0 }]);
    await expect.poll(found, { timeout: 30_000 }).toEqual(ran);
    const last = await gateway.call("GET", "/v1/schedules/nightly", { key: acme });
    expect(last.body).toMatchObject({ id: "nightly", runs: 3, lastJobId: `nightly@${dues[2]}` });
    const read = { key: acme, body: { request: { kind: "read", path: "runs" } } };
    const content = (await gateway.call("POST", "/v1/jobs?wait=20", read)).body.result.value.content;
    expect(content).toBe("ran\nran\nran\n");
  });
});
