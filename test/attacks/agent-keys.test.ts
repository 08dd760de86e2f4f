import { expect } from "vitest";
import { busybox } from "../support/fleet.ts";
import { fleetTest, type TestGateway, test } from "../support/gateway.ts";

const request = { kind: "exec", command: "true" } as const;

async function keyOf(gateway: TestGateway, more: object = {}): Promise<string> {
  const body = { role: "tenant", tenant: "acme", name: "k", ...more };
  return (await gateway.call("POST", "/v1/keys", { body })).body.token;
}

test("a key that fixes its agent submits for no other agent, by any door, and names none to escape it", async ({
  gateways,
}) => {
  const gateway = await gateways.start();
  const key = await keyOf(gateway, { agent: "coder" });
  const post = (path: string, body: unknown, headers = {}) =>
    gateway.call("POST", path, { key, body, headers });
  const own = await post("/v1/jobs", { scope: "agent", request });
  expect(own.body.sandbox).toBe("acme.a.coder");
  expect((await post("/v1/jobs", { scope: "agent", agent: "coder", request })).body.sandbox).toBe(
    "acme.a.coder",
  );
  for (const agent of ["writer", "default", "Coder", "coder:x"]) {
    const refused = { status: 403, body: { code: "forbidden" } };
    expect(await post("/v1/jobs", { agent, request }), agent).toMatchObject(refused);
    const order = { agent, request };
    const put = { key, body: { everyMs: 60_000, order } };
    expect(await gateway.call("PUT", "/v1/schedules/s", put), agent).toMatchObject(refused);
    const message = { jsonrpc: "2.0", id: 1, method: "ping" };
    const accept = { accept: "application/json, text/event-stream", "berth-agent": agent };
    expect(await post("/mcp", message, accept), agent).toMatchObject(refused);
    const batch = await post("/v1/batches", { jobs: [order] });
    const look = () => gateway.call("GET", `/v1/batches/${batch.body.id}`, { key });
    await expect.poll(async () => (await look()).body.refused).toBe(1);
  }
  const schedule = { everyMs: 60_000, order: { request } };
  const made = await gateway.call("PUT", "/v1/schedules/s", { key, body: schedule });
  expect(made.body.order.agent).toBe("coder");
  for (const body of [
    { role: "admin", name: "x", agent: "coder" },
    { role: "tenant", tenant: "acme", name: "x", agent: "a\u202eb" },
  ])
    expect((await gateway.call("POST", "/v1/keys", { body })).status).toBe(400);
});

fleetTest(
  "rules of an agent's layer and of a key hold on the worker, by any door, and none of them is a way around the other",
  async ({ fleet, gateways }) => {
    await fleet.worker("worker-1", busybox);
    const gateway = await gateways.start();
    const berth = fleet.client();
    await berth.profiles.set("agent.acme.coder", { rules: [{ commands: { deny: ["git push"] } }] });
    const settings = { rules: [{ kinds: { deny: ["write"] } }] };
    const [ruled, agents] = [
      await keyOf(gateway, { settings }),
      await keyOf(gateway, { agent: "coder", settings }),
    ];
    const run = async (key: string, asked: object, more: object = {}) => {
      const body = { request: asked, ...more };
      return (await gateway.call("POST", "/v1/jobs?wait=30", { key, body })).body.result?.outcome;
    };
    const denied = { kind: "refused", code: "denied-by-rule" };
    const push = { kind: "exec", command: "git push || true" };
    const write = { kind: "write", path: "a", content: "x" };
    expect(await run(agents, push)).toMatchObject(denied);
    expect(await run(agents, write)).toMatchObject(denied);
    expect(await run(ruled, write)).toMatchObject(denied);
    expect(await run(ruled, { kind: "steps", steps: [write] })).toMatchObject(denied);
    for (const more of [{ settings: { rules: [] } }, { session: "x", scope: "session" }, { agent: "writer" }])
      expect(await run(ruled, write, more), JSON.stringify(more)).toMatchObject(denied);
    // The key's rules say nothing of commands, and the agent's hold for that agent only.
    expect(await run(ruled, push, { agent: "coder" })).toMatchObject(denied);
    expect(await run(ruled, push)).toEqual({ kind: "exited", code: 0 });
    // A client with Redis passes no key; the agent's layer holds all the same.
    expect((await berth.tenant("acme").exec("git push", { agent: "coder" })).outcome).toMatchObject(denied);
  },
);

fleetTest("what an agent's layer takes, its key cannot get back", async ({ fleet, gateways }) => {
  await fleet.worker("worker-1", busybox);
  const gateway = await gateways.start();
  const berth = fleet.client();
  await berth.profiles.set("agent.acme.coder", { mode: "off" });
  const [fixed, free] = [await keyOf(gateway, { agent: "coder" }), await keyOf(gateway)];
  const run = async (key: string, more: object) =>
    (await gateway.call("POST", "/v1/jobs?wait=30", { key, body: { request, ...more } })).body.result
      ?.outcome;
  expect(await run(fixed, {})).toMatchObject({ kind: "refused", code: "sandbox-disabled" });
  expect(await run(fixed, { session: "other", scope: "session" })).toMatchObject({
    code: "sandbox-disabled",
  });
  // A key that fixes none may name any agent, as the documents say.
  expect(await run(free, { agent: "coder" })).toMatchObject({ code: "sandbox-disabled" });
  expect(await run(free, { agent: "writer" })).toEqual({ kind: "exited", code: 0 });
});
