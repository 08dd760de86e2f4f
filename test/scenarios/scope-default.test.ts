import type { Berth } from "@berth/client";
import { describe, expect } from "vitest";
import { runCli } from "../support/cli.ts";
import { busybox } from "../support/fleet.ts";
import { adminKey, fleetTest as test } from "../support/gateway.ts";

async function keyOf(berth: Berth, tenant: string, options: object = {}): Promise<string> {
  return (await berth.tenant(tenant).exec("true", options).enqueued()).key;
}

describe("scope of jobs that name none", () => {
  test("a job's scope is its own, or its agent's layer's, or the tenant's, or the fleet's", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    expect(await keyOf(berth, "acme", { session: "a" })).toBe("acme");
    await berth.profiles.set("fleet", { scope: "session" });
    expect(await keyOf(berth, "acme", { session: "a" })).toBe("acme.s.a");
    await berth.profiles.set("tenant.acme", { scope: "agent", limits: { pids: 64 } });
    await berth.profiles.set("agent.acme.writer", { scope: "tenant" });
    expect(await keyOf(berth, "acme", { session: "a" })).toBe("acme.a.default");
    expect(await keyOf(berth, "acme", { agent: "coder" })).toBe("acme.a.coder");
    expect(await keyOf(berth, "acme", { agent: "writer" })).toBe("acme");
    expect(await keyOf(berth, "acme", { scope: "session", agent: "coder" })).toBe("acme.s.main");
    expect(await keyOf(berth, "globex")).toBe("globex.s.main");
    expect(await berth.profiles.diff("tenant.acme", { limits: { pids: 64 } })).toEqual([
      { path: "scope", from: "agent", to: undefined },
    ]);
  });

  test("the scope of jobs that name none is the same through every door, also for batches and schedules, and of a worker's BERTH_SCOPE", async ({
    fleet,
    gateways,
  }) => {
    const gateway = await gateways.start();
    const cli = async (env: Record<string, string>, ...args: string[]) => {
      const { code, stdout, stderr } = await runCli(args, { env });
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      return stdout;
    };
    const http = { BERTH_URL: gateway.url, BERTH_KEY: adminKey };
    await cli(http, "profile", "set", "tenant.acme", "scope=session");
    await fleet.worker("worker-1", { ...busybox, BERTH_SCOPE: "agent" });
    const berth = fleet.client();
    const pwd = { kind: "exec", command: "pwd" } as const;
    const order = { tenant: "acme", request: pwd };
    const one = await gateway.call("POST", "/v1/jobs", { body: { ...order, session: "http" } });
    expect(one.body.sandbox).toBe("acme.s.http");
    const explicit = await gateway.call("POST", "/v1/jobs", { body: { ...order, scope: "tenant" } });
    expect(explicit.body.sandbox).toBe("acme");
    for (const agent of ["", "?agent=coder"])
      expect((await gateway.call("GET", `/v1/tenants/acme/scope${agent}`)).body).toEqual({
        scope: "session",
      });
    await cli(http, "exec", "acme", "--session", "cli", "--", "true");
    await cli({ REDIS_URL: fleet.redis.url }, "exec", "acme", "--session", "redis", "--", "true");
    // What no layer says is as the worker has it.
    expect(await keyOf(berth, "globex")).toBe("globex.a.default");
    await berth.schedules.put({
      id: "often",
      everyMs: 200,
      maxRuns: 1,
      order: { ...order, session: "tick" },
    });
    const batch = berth.batch([{ ...order, session: "batch" }], { id: "many" });
    for await (const _ of batch.results()) {
    }
    const keys = async () => (await berth.sandboxes({ tenant: "acme" })).map(({ key }) => key).sort();
    await expect
      .poll(keys)
      .toEqual(["acme", ...["batch", "cli", "http", "redis", "tick"].map((name) => `acme.s.${name}`)]);
  });

  test("the default scope is never the sandbox that all tenants share", async ({ fleet }) => {
    const { profiles } = fleet.client();
    for (const layer of ["fleet", "tenant.acme", "agent.acme.coder"])
      await expect(profiles.set(layer, { scope: "shared" as never })).rejects.toMatchObject({
        code: "invalid-profile",
        context: { problems: [expect.stringContaining("scope")] },
      });
    await expect(profiles.set("profile.net", { scope: "session" })).rejects.toMatchObject({
      code: "invalid-profile",
    });
    const settings = { scope: "session" } as never;
    await expect(fleet.client().tenant("acme").exec("true", { settings }).enqueued()).rejects.toMatchObject({
      code: "invalid-job",
    });
  });
});
