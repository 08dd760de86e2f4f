import { tenantId } from "@berth/protocol";
import { expect } from "vitest";
import { runCli } from "../support/cli.ts";
import { busybox } from "../support/fleet.ts";
import { adminKey, fleetTest as test } from "../support/gateway.ts";
import { McpSession } from "../support/mcp.ts";

const bob = "bob@example.com";
const chat = "agent:main:telegram:-100";
const [bobId, chatId] = [tenantId.parse(bob), tenantId.parse(chat)];

test("tenants, sessions and agents with names of any letters work in one sandbox through every door, and both names are shown", async ({
  fleet,
  gateways,
}) => {
  await fleet.worker("worker-1");
  const gateway = await gateways.start();
  const berth = fleet.client();
  const acme = berth.tenant(bob);
  expect(acme).toMatchObject({ id: bobId, name: bob });
  await acme.write("from", "client\n", { scope: "session", session: chat });
  const append = (text: string) => `echo ${text} >> from`;
  const call = await gateway.call("POST", "/v1/sandbox/bash", {
    body: { tenant_id: bob, session_id: chat, command: append("sandbox") },
  });
  expect(call.body).toMatchObject({ exit_code: 0 });
  const job = await gateway.call("POST", "/v1/jobs?wait=20", {
    body: {
      tenant: bobId,
      session: chat,
      scope: "session",
      request: { kind: "exec", command: append("http") },
    },
  });
  expect(job.body).toMatchObject({
    tenant: bobId,
    session: chatId,
    sandbox: `${bobId}.s.${chatId}`,
    names: { tenant: bob, session: chat },
    state: "finished",
  });
  const lines = [
    { tenant: bob, session: chat, scope: "session", request: { kind: "exec", command: append("batch") } },
  ];
  const batch = berth.batch(lines as never, { id: "names" });
  for await (const { result } of batch.results()) expect(result.outcome).toEqual({ kind: "exited", code: 0 });
  const { key, token } = (
    await gateway.call("POST", "/v1/keys", { body: { role: "tenant", tenant: bob, name: "bob's" } })
  ).body;
  expect(key).toMatchObject({ tenant: bobId, tenantName: bob });
  await using mcp = await McpSession.http(
    gateway.url,
    { authorization: `Bearer ${token}`, "berth-session": chat, "berth-scope": "session" },
    "modern",
  );
  await mcp.call("write", { file_path: "mcp", content: "mcp" });
  const read = await gateway.call("POST", "/v1/sandbox/read", {
    key: token,
    body: { session_id: chat, path: "from" },
  });
  expect(read.body.content).toBe("client\nsandbox\nhttp\nbatch\n");
  const { sessions } = (await gateway.call("GET", "/v1/sandbox/sessions", { key: token })).body;
  expect(sessions).toMatchObject([
    { tenant_id: bobId, session_id: chatId, names: { tenant: bob, session: chat } },
  ]);
  const usage = await gateway.call("GET", `/v1/tenants/${encodeURIComponent(bob)}`, { key: token });
  expect(usage.body).toMatchObject({ tenant: bobId, name: bob });
  const stopped = await gateway.call(
    "POST",
    `/v1/sandbox/sessions/${encodeURIComponent(bob)}/${encodeURIComponent(chat)}/stop`,
  );
  expect(stopped.status).toBe(204);
});

test("the command line takes such names and shows them beside the ids", async ({ fleet, gateways }) => {
  const gateway = await gateways.start();
  const doors = [{ REDIS_URL: fleet.redis.url }, { BERTH_URL: gateway.url, BERTH_KEY: adminKey }];
  const run = async (env: Record<string, string>, ...args: string[]) => {
    const { code, stdout, stderr } = await runCli(args, { env });
    expect({ code, stderr }, args.join(" ")).toEqual({ code: 0, stderr: "" });
    return stdout;
  };
  for (const [index, env] of doors.entries()) {
    const id = `job-${index}`;
    await run(env, "exec", bob, "--session", chat, "--detach", "--id", id, "--", "true");
    expect(await run(env, "ps", bob)).toMatch(new RegExp(`${bobId}.*${chatId}.*${bob}, ${chat}`));
    expect(await run(env, "ps", "--sandboxes")).toContain(bob);
    expect(await run(env, "why", id)).toContain(`given names: ${bob}, ${chat}`);
    await run(env, "profile", "set", `tenant.${bob}`, "limits.pids=64");
    expect(JSON.parse(await run(env, "profile", "get", `tenant.${bobId}`, "--json"))).toMatchObject({
      layer: `tenant.${bobId}`,
    });
    await run(env, "profile", "set", `agent."${bob}".${chat}`, "limits.pids=32");
    await run(env, "tenant", "grant", bob, "--pool", "gpu");
    expect(JSON.parse(await run(env, "tenant", "usage", bob, "--json"))).toMatchObject({
      tenant: bobId,
      name: bob,
      pools: ["default", "gpu"],
    });
    await run(env, "cancel", id);
  }
  const create = ["key", "create", "theirs", "--tenant", bob, "--pool", "gpu"];
  expect((await runCli(create, { env: doors[0] ?? {} })).code).toBe(0);
  expect(await run(doors[0] ?? {}, "key", "ls")).toContain(bob);
});

test("a schedule of such a tenant runs, and its jobs have the names", async ({ fleet }) => {
  await fleet.worker("worker-1", busybox);
  const berth = fleet.client();
  await berth.schedules.put({
    id: "often",
    everyMs: 200,
    maxRuns: 1,
    order: { tenant: bob, session: chat, request: { kind: "exec", command: "true" } },
  });
  const ran = async () => (await berth.schedules.get("often"))?.lastJobId;
  await expect.poll(ran, { timeout: 30_000 }).toBeDefined();
  const id = (await ran()) ?? "";
  await expect.poll(async () => (await berth.jobs.find(id))?.state, { timeout: 30_000 }).toBe("finished");
  expect(await berth.jobs.find(id)).toMatchObject({ tenant: bobId, names: { tenant: bob, session: chat } });
});
