import { readdir } from "node:fs/promises";
import { redisKeys, sandboxKey, tenantId } from "@berth/protocol";
import { expect } from "vitest";
import { busybox } from "../support/fleet.ts";
import { fleetTest as test } from "../support/gateway.ts";

const acme = tenantId.parse("acme");

test("lists forget a session that was destroyed, and its record and its home go when its worker gives it up", async ({
  fleet,
  gateways,
}) => {
  await fleet.worker("worker-1", { ...busybox, BERTH_IDLE_MS: "500" });
  const gateway = await gateways.start();
  const redis = fleet.redis.connect();
  const write = (session: string) =>
    gateway.call("POST", "/v1/sandbox/write", {
      body: { tenant_id: acme, session_id: session, path: "a", content: "x" },
    });
  const sessions = async () => {
    const { body } = await gateway.call("GET", "/v1/sandbox/sessions");
    return body.sessions.map(({ session_id: id }: { session_id: string }) => id).sort();
  };
  expect((await write("kept")).status).toBe(200);
  expect((await write("gone")).status).toBe(200);
  expect(await sessions()).toEqual(["gone", "kept"]);
  expect((await gateway.call("DELETE", "/v1/sandbox/sessions/acme/gone")).status).toBe(204);
  expect(await sessions()).toEqual(["kept"]);
  const key = sandboxKey.parse("acme.s.gone");
  const listed = async () => [
    await redis.zscore(redisKeys.sandboxesOf(acme), key),
    await redis.zscore(redisKeys.sandboxes, key),
    await redis.hget(redisKeys.lease(key), "home"),
  ];
  await expect.poll(listed, { timeout: 30_000 }).toEqual([null, null, null]);
  expect(await redis.hget(redisKeys.lease(sandboxKey.parse("acme.s.kept")), "home")).not.toBeNull();
  // Used again it is as any other.
  expect((await write("gone")).status).toBe(200);
  expect(await sessions()).toEqual(["gone", "kept"]);
  expect(await redis.hget(redisKeys.lease(key), "home")).not.toBeNull();
});

test("a sandbox that is used again right after it was destroyed keeps its home and its place in the lists", async ({
  fleet,
}) => {
  await fleet.worker("worker-1", { ...busybox, BERTH_IDLE_MS: "500" });
  const berth = fleet.client();
  const tenant = berth.tenant(acme);
  await tenant.write("a", "x");
  const destroyed = tenant.destroy();
  const again = tenant.write("b", "y");
  expect([(await destroyed).outcome.kind, (await again).outcome.kind]).toEqual(["done", "done"]);
  const worker = async () => (await berth.sandboxes())[0]?.worker;
  await expect.poll(worker, { timeout: 30_000 }).toBeUndefined();
  expect((await berth.sandboxes()).map(({ key, home }) => [key, home !== undefined])).toEqual([
    ["acme", true],
  ]);
  expect((await tenant.read("b")).content).toBe("y");
});

test("sandboxes that were not used for as long as the operator said are destroyed, and others stay", {
  timeout: 60_000,
}, async ({ fleet }) => {
  const env = { ...busybox, BERTH_IDLE_MS: "500", BERTH_SWEEP_MS: "100", BERTH_PRUNE_DAYS: "30" };
  const worker = await fleet.worker("worker-1", env);
  const berth = fleet.client();
  for (const name of ["acme", "globex"]) await berth.tenant(name).write("a", "x");
  const redis = fleet.redis.connect();
  const days = (count: number) => Date.now() - count * 86_400_000;
  await redis.zadd(redisKeys.sandboxes, days(31), "acme", days(29), "globex");
  const keys = async () => (await berth.sandboxes()).map(({ key }) => key);
  await expect.poll(keys, { timeout: 45_000 }).toEqual(["globex"]);
  const pruning = worker.log.split("\n").filter((line) => /"event":"(pruning|sandbox\.pruned)/.test(line));
  // Only the pass that found something logs anything.
  expect(pruning.map((line) => JSON.parse(line))).toMatchObject([
    { event: "pruning.begun", sandboxes: 1, unusedMs: 30 * 86_400_000 },
    { event: "sandbox.pruned", key: "acme" },
    { event: "pruning.ended", ordered: 1, left: 0 },
  ]);
  const folders = (await readdir(fleet.workspaces)).filter((name) => !name.startsWith("."));
  expect(folders).toEqual(["globex"]);
});
