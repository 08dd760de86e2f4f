import { expect } from "vitest";
import { fleetTest, type TestGateway } from "../support/gateway.ts";
import { McpSession } from "../support/mcp.ts";

const destroy = { kind: "destroy" } as const;
const refused = {
  status: 403,
  body: { code: "forbidden", detail: expect.stringContaining("BERTH_GATEWAY_SESSIONS is admin") },
};

async function keyOf(gateway: TestGateway): Promise<string> {
  const body = { role: "tenant", tenant: "acme", name: "k" };
  return (await gateway.call("POST", "/v1/keys", { body })).body.token;
}

fleetTest(
  "with BERTH_GATEWAY_SESSIONS=admin a tenant key neither lists nor destroys sessions, by any door",
  async ({ fleet, gateways }) => {
    await fleet.worker("worker-1");
    const [open, gateway] = await Promise.all([
      gateways.start(),
      gateways.start({ BERTH_GATEWAY_SESSIONS: "admin" }),
    ]);
    const key = await keyOf(gateway);
    const place = { session: "s1", scope: "session" };
    const run = (command: string) =>
      gateway.call("POST", "/v1/sandbox/bash", { key, body: { session_id: "s1", command } });
    expect(await run("echo kept > mark")).toMatchObject({ status: 200, body: { exit_code: 0 } });
    // Paused at a gateway that allows it: resuming it here is no way around.
    const schedule = { everyMs: 86_400_000, paused: true, order: { ...place, request: destroy } };
    expect(await open.call("PUT", "/v1/schedules/before", { key, body: schedule })).toMatchObject({
      status: 200,
    });

    const ways: readonly (readonly [string, string, unknown?])[] = [
      ["GET", "/v1/sandbox/sessions"],
      ["DELETE", "/v1/sandbox/sessions/acme/s1"],
      ["POST", "/v1/jobs", { ...place, request: destroy }],
      ["POST", "/v1/jobs", [{ ...place, request: destroy }]],
      ["POST", "/v1/jobs", { ...place, agent: "coder", tenant: "acme", request: destroy }],
      ["PUT", "/v1/schedules/mine", schedule],
      ["PUT", "/v1/schedules/before", schedule],
      ["POST", "/v1/schedules/before/resume"],
    ];
    for (const [method, path, body] of ways)
      expect(
        await gateway.call(method, path, { key, ...(body === undefined ? {} : { body }) }),
        `${method} ${path}`,
      ).toMatchObject(refused);
    const batch = await gateway.call("POST", "/v1/batches", {
      key,
      body: { jobs: [{ ...place, request: destroy }] },
    });
    const look = () => gateway.call("GET", `/v1/batches/${batch.body.id}`, { key });
    await expect.poll(async () => (await look()).body).toMatchObject({ state: "finished", refused: 1 });
    for (const era of ["legacy", "modern"] as const) {
      const headers = { authorization: `Bearer ${key}`, "berth-session": "s1", "berth-scope": "session" };
      await using mcp = await McpSession.http(gateway.url, headers, era);
      for (const action of ["reset", "destroy"])
        expect(await mcp.call("sandbox", { action }), action).toMatchObject({
          isError: true,
          text: expect.stringContaining("only an admin key may destroy sessions"),
        });
    }

    // Nothing of it took place, and an admin's key does both.
    expect(await run("cat mark")).toMatchObject({ status: 200, body: { stdout: "kept\n" } });
    expect((await gateway.call("GET", "/v1/sandbox/sessions")).body.sessions).toMatchObject([
      { tenant_id: "acme", session_id: "s1" },
    ]);
    expect((await gateway.call("DELETE", "/v1/sandbox/sessions/acme/s1")).status).toBe(204);
    expect(await run("cat mark")).toMatchObject({ status: 200, body: { exit_code: 1 } });
    // By default a tenant's key does both too.
    expect((await open.call("GET", "/v1/sandbox/sessions", { key })).status).toBe(200);
    expect((await open.call("DELETE", "/v1/sandbox/sessions/acme/s1", { key })).status).toBe(204);
  },
);
