import { writeFile } from "node:fs/promises";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { runCli } from "../support/cli.ts";
import { busybox } from "../support/fleet.ts";
import { adminKey, fleetTest as test } from "../support/gateway.ts";

/** `berth profile` with that environment. */
function profileCommand(env: Record<string, string>) {
  return async (...args: string[]) => {
    const { code, stdout, stderr } = await runCli(["profile", ...args], { env });
    expect({ code, stderr }, args.join(" ")).toEqual({ code: 0, stderr: "" });
    return stdout;
  };
}

describe("berth profile", () => {
  test("berth profile sets, shows, compares and takes back a layer through a gateway, which notes it", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const env = { BERTH_URL: gateway.url, BERTH_KEY: adminKey };
    const berth = profileCommand(env);
    const made = await berth("set", "tenant.acme", "limits.memoryBytes=256m", "images=a,b", "env.TEAM=blue");
    expect(made).toMatch(/^tenant.acme {2}version 1, \d+ m?s ago by key admin\n/);
    expect(made).toContain(
      '  images = ["a","b"]\n  env = {"TEAM":"blue"}\n  limits.memoryBytes = 268435456\n',
    );
    const wrong = ["profile", "set", "tenant.acme", "limits.memoryBytes=lots", "limits.pids=1"];
    const refused = await runCli(wrong, { env });
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toMatch(
      /limits.memoryBytes: a size is a number of bytes.*limits.pids: at least 32/s,
    );
    await berth("set", "tenant.acme", "--unset", "env.TEAM", "limits.cpus=0.5");
    expect(JSON.parse(await berth("get", "tenant.acme", "--json")).settings).toEqual({
      images: ["a", "b"],
      limits: { memoryBytes: 268_435_456, cpus: 0.5 },
    });
    await berth("rm", "tenant.acme");
    await berth("rollback", "tenant.acme", "1");
    expect(await berth("history", "tenant.acme")).toMatch(/env=.*\n.*removed\n.*limits.cpus=0.5\n.*env=/);
    const stale = await gateway.call("PUT", "/v1/profiles/tenant.acme?ifVersion=1", { body: {} });
    expect(stale).toMatchObject({ status: 409, body: { code: "profile-changed" } });
    expect((await gateway.call("DELETE", "/v1/profiles/tenant.other")).status).toBe(404);
    const { body } = await gateway.call("GET", "/v1/audit");
    const noted = body.entries.filter(({ action }: { action: string }) => action.startsWith("profile."));
    expect(noted.map(({ action }: { action: string }) => action)).toEqual([
      "profile.rolled-back",
      "profile.removed",
      "profile.set",
      "profile.set",
    ]);
    expect(noted[0]).toMatchObject({
      actor: "admin",
      target: expect.stringMatching(/^tenant.acme version \d+$/),
    });
  });
  test("berth profile does the same through Redis, and the layer's history has who did it", async ({
    fleet,
  }) => {
    const berth = profileCommand({ REDIS_URL: fleet.redis.url });
    const file = join(fleet.workspaces, "..", "fleet.yaml");
    await writeFile(file, "mode: off # for now\nlimits: { memoryBytes: 1g }\n");
    await berth("set", "fleet", "--file", file);
    expect(await berth("diff", "fleet", "mode=all")).toBe("- mode = off\n+ mode = all\n");
    const { layers } = JSON.parse(await berth("get", "--json"));
    expect(layers).toMatchObject([
      { layer: "fleet", settings: { mode: "off" }, by: `${userInfo().username}@${hostname()}` },
    ]);
  });
});

describe("gateway's key", () => {
  test("a gateway's key holds its jobs, batches and schedules to its settings, and the tenant's other keys see no layers", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1", busybox);
    const gateway = await gateways.start();
    const create = ["key", "create", "small", "--tenant", "acme", "--set", "limits.openFiles=600"];
    const admin = { BERTH_URL: gateway.url, BERTH_KEY: adminKey };
    const key = (await runCli(create, { env: admin })).stdout.trim();
    const request = { kind: "exec", command: "ulimit -n" };
    const run = (settings?: object) =>
      gateway.call("POST", "/v1/jobs?wait=30", { key, body: { request, ...(settings ? { settings } : {}) } });
    expect((await run()).body.result.value.stdout).toBe("600\n");
    expect((await run({ limits: { openFiles: 550 } })).body.result.value.stdout).toBe("550\n");
    const more = await run({ limits: { openFiles: 601 } });
    expect(more).toMatchObject({ status: 403, body: { code: "forbidden" } });
    expect(more.body.detail).toContain("limits.openFiles: 601 is more than the 600 allowed here");
    const scheduled = await gateway.call("PUT", "/v1/schedules/often", {
      key,
      body: { everyMs: 60_000, order: { request } },
    });
    expect(scheduled.body.order).toMatchObject({ keySettings: { limits: { openFiles: 600 } } });
    // The key's layer was the tenant's choice once; what asks for nothing goes on when the tenant is held to less.
    await fleet.client().profiles.set("tenant.acme", { limits: { openFiles: 580 } });
    await expect.poll(async () => (await run()).body.result.value?.stdout).toBe("580\n");
    const own = await run({ limits: { openFiles: 590 } });
    expect(own.body.result.outcome).toMatchObject({ kind: "refused", code: "not-allowed" });
    // A caller cannot bring a key's layer of its own.
    const forged = { request, keySettings: { limits: { openFiles: 4_096 } } };
    expect((await gateway.call("POST", "/v1/jobs?wait=30", { key, body: forged })).status).toBe(400);
    const { body } = await gateway.call("GET", "/v1/keys");
    expect(body.keys[0].settings).toEqual({ limits: { openFiles: 600 } });
    for (const [method, path] of [
      ["GET", "/v1/profiles"],
      ["GET", "/v1/profiles/tenant.acme"],
      ["PUT", "/v1/profiles/tenant.acme"],
    ] as const)
      expect(
        (await gateway.call(method, path, { key, body: method === "PUT" ? {} : undefined })).status,
      ).toBe(403);
  });
});
