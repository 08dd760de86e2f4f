import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect, onTestFinished } from "vitest";
import { namesOf, ownNames, undescribed, watchKeys } from "../support/described-keys.ts";
import { busybox } from "../support/fleet.ts";
import { adminKey, fleetTest as test } from "../support/gateway.ts";
import { test as redisTest } from "../support/redis.ts";

/** Not of this test: the channel, and keys of a cluster, of egress rules, and of a client that begins to read while it waits. */
const elsewhere = [redisKeys.control, redisKeys.inboxWake("<client>"), redisKeys.egressLog("<owner>")].concat(
  [redisKeys.slotWrites("<tenant>"), redisKeys.outbox("<tenant>"), redisKeys.outboxes],
);
const done = { outcome: { kind: "done" } };

describe("docs/redis-keys.md", () => {
  test("docs/redis-keys.md names every key and field that a fleet leaves in Redis, and each expires as the page says", async ({
    fleet,
    gateways,
    topology,
    skip,
  }) => {
    skip(topology === "cluster", "keyspace notifications are of one node");
    const redis = fleet.redis.connect();
    const touched = await watchKeys(fleet.redis);
    const secretsKey = randomBytes(32).toString("base64");
    // Its disk is its own, and the third sandbox needs the place of another.
    const host = { ...busybox, BERTH_HOST: "host-1", BERTH_MAX_SANDBOXES: "2", BERTH_SCOPE: "tenant" };
    await fleet.worker("worker-1", { ...host, BERTH_SECRETS_KEY: secretsKey });
    const berth = fleet.client({ secretsKey });
    const acme = berth.tenant("acme");
    const gateway = await gateways.start({
      ...{ BERTH_SECRETS_KEY: secretsKey, BERTH_WEBHOOK_ALLOW: "127.0.0.0/8" },
    });
    const hook = createServer((_request, response) => response.writeHead(204).end()).listen(0, "127.0.0.1");
    onTestFinished(() => void hook.close());
    await once(hook, "listening");
    const webhook = `http://localhost:${(hook.address() as AddressInfo).port}/`;

    await berth.secrets.set("acme", "TOKEN", "a-secret-of-some-length");
    await berth.profiles.set("tenant.acme", {
      rules: [{ approval: { commands: ["deploy"], expiresMs: 600_000 } }],
      ceilings: { snapshots: 5 },
    });
    await berth.profiles.set("profile.default", { toolsAccess: "rw" });
    await berth.profiles.set("tenant.gone", { limits: { pids: 64 } });
    await berth.profiles.set("tenant.gone", null);
    await berth.tools.set("greet", { description: "greets", argv: ["echo", "hi"] });
    await acme.grant({ pools: ["gpu"] });
    const made = await gateway.call("POST", "/v1/keys", {
      body: { role: "tenant", tenant: "acme", name: "k", pools: ["gpu"] },
    });
    expect(made.status).toBe(201);
    const key = made.body.token;

    await acme.exec(
      "mkdir -p artifacts; echo hi > artifacts/note.md; head -c 300000 /dev/zero > artifacts/big",
    );
    expect(await acme.exec("true", { artifacts: ["artifacts/*"] })).toMatchObject({
      outcome: { kind: "exited", code: 0 },
    });
    expect(await acme.tool("greet")).toMatchObject({ stdout: "hi\n" });
    expect(await acme.write("kept", "x", { persist: true, session: "chat" })).toMatchObject(done);
    expect(await acme.write("large", "x".repeat(400_000))).toMatchObject(done);
    await acme.exec("pwd", { session: "chat", scope: "session" });
    await acme.exec("pwd", { agent: "writer", scope: "agent", priority: 3 });
    await berth.tenant("Großkunde & Söhne").exec("echo hi", { scope: "shared" });
    await acme.exec("echo later", { delayMs: 300 });
    const never = await acme.exec("echo never", { delayMs: 600_000 }).enqueued();
    await berth.tenant("former").exec("echo hi > file");
    expect(await berth.tenant("former").destroy()).toMatchObject(done);
    expect(await acme.snapshot("base")).toMatchObject(done);
    await acme.snapshot("base", { replace: true });
    const letter = await acme.exec("exit 1", { id: "letter", retry: { attempts: 2, backoffMs: 100 } });
    expect(letter.outcome).toMatchObject({ code: 1 });
    await expect.poll(() => berth.deadLetters.list()).toHaveLength(1);

    const approved = await acme.exec("deploy() { echo deployed; }; deploy").enqueued();
    await expect.poll(() => berth.approvals.list()).toHaveLength(1);
    expect(await undescribed(redis, { over: false })).toEqual([]);
    await never.cancel();
    expect(await never.result).toMatchObject({ outcome: { kind: "cancelled" } });
    const [asked] = await berth.approvals.list();
    await berth.approvals.approve({ jobId: approved.id, digest: asked?.digest ?? "" });
    expect(await approved.result).toMatchObject({ value: { stdout: "deployed\n" } });

    await berth.schedules.put({
      ...{ id: "beat", everyMs: 300, maxRuns: 2 },
      order: { tenant: "acme", request: { kind: "exec", command: "true" } },
    });
    await expect.poll(async () => (await berth.schedules.get("beat"))?.runs).toBe(2);

    const order = (command: string) => ({ tenant: "acme", request: { kind: "exec", command } });
    const headers = { "idempotency-key": "once" };
    await gateway.call("POST", "/v1/jobs?wait=30", { body: order("true"), headers });
    const body = `${JSON.stringify(order("true"))}\n${JSON.stringify(order("exit 1"))}\n{broken\n`;
    const lines = { "content-type": "application/x-ndjson" };
    const batches = [
      await gateway.call("POST", "/v1/batches", { body, headers: lines }),
      await gateway.call("POST", "/v1/batches", { body: { jobs: [order("true")], webhook } }),
    ].map(
      ({ body }) =>
        () =>
          gateway.call("GET", `/v1/batches/${body.id}`),
    );
    const states = () => Promise.all(batches.map(async (read) => (await read()).body.state));
    await expect.poll(states).toEqual(["finished", "finished"]);
    await expect.poll(async () => (await batches[1]?.())?.body.webhook.state).toBe("delivered");
    const form = { "content-type": "application/x-www-form-urlencoded", origin: gateway.url };
    await gateway.fetch("POST", "/board/login", { body: `key=${adminKey}`, headers: form });
    await berth.ping("worker-1");
    expect((await gateway.call("GET", "/v1/tenants/acme/usage", { key })).status).toBe(200);
    await berth.tenant("globex").pause();

    // Jobs, their retries and their acceptances are over: what is left of them expires.
    await expect.poll(() => redis.zcard(redisKeys.unfinished)).toBe(0);
    await expect.poll(() => undescribed(redis, { over: true })).toEqual([]);
    expect(namesOf(touched).unknown).toEqual([]);
    const missing = () => {
      const { names } = namesOf(touched);
      return ownNames.filter((name) => !names.has(name) && !elsewhere.includes(name));
    };
    await expect.poll(missing, { message: "keys that this test does not bring about" }).toEqual([]);
  });
});

describe("test of docs/redis-keys.md", () => {
  redisTest(
    "finds keys and fields that the page does not have, other types, and expiries that differ",
    async ({ redis }) => {
      const commands = redis.connect();
      const acme = sandboxKey.parse("acme");
      await commands.hset(redisKeys.job(acme, "a"), { kind: "exec", novel: "1" });
      await commands.hset("berth:{acme}:jobs:a", { name: "exec", odd: "1" });
      await commands.set(redisKeys.leases, "1");
      await commands.set("berth:novel", "1");
      await commands.set(redisKeys.layout, "2", "PX", 60_000);
      expect(await undescribed(commands, { over: true })).toEqual([
        "berth:layout expires",
        "berth:leases{fleet} is a string, and described as a sorted set",
        "berth:novel is not described",
        "berth:{acme}:job:a has a field novel",
        "berth:{acme}:job:a has no expiry",
        "berth:{acme}:jobs:a has a field odd",
      ]);
    },
  );
});
