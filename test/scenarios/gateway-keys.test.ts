import { ApiKeys } from "@berth/ledger";
import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { adminKey, test } from "../support/gateway.ts";

describe("gateway without keys", () => {
  test("a gateway without keys listens on loopback and logs that it is open", async ({ gateways }) => {
    const gateway = await gateways.start({ BERTH_ADMIN_KEY: "" });
    await expect.poll(() => gateway.log).toContain("gateway.open");
    expect((await gateway.call("GET", "/v1/keys", { key: undefined })).status).toBe(200);
  });

  test("a gateway without keys refuses to start on another address, with exit code 78 and the reason", async ({
    gateways,
  }) => {
    const gateway = gateways.spawn({ BERTH_ADMIN_KEY: "", BERTH_GATEWAY_HOST: "0.0.0.0" });
    expect(await gateway.ended()).toBe(78);
    expect(gateway.errors).toContain("BERTH_GATEWAY_HOST: 0.0.0.0 is reachable from elsewhere");
  });

  test("a gateway without keys closes as soon as there is a key, and the first key must be an admin's", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({ BERTH_ADMIN_KEY: "" });
    const tenantFirst = { role: "tenant", tenant: "acme", name: "first" };
    expect(await gateway.call("POST", "/v1/keys", { key: undefined, body: tenantFirst })).toMatchObject({
      status: 409,
      body: { code: "conflict" },
    });
    const made = await gateway.call("POST", "/v1/keys", {
      key: undefined,
      body: { role: "admin", name: "ops" },
    });
    expect(made.status).toBe(201);
    expect((await gateway.call("GET", "/v1/keys", { key: undefined })).status).toBe(401);
    expect((await gateway.call("GET", "/v1/keys", { key: made.body.token })).status).toBe(200);
  });
});

describe("gateway that once had a key", () => {
  const open = { BERTH_ADMIN_KEY: "" };

  test("a gateway stays closed when its last key is revoked, and its answer explains how to get in again", async ({
    gateways,
  }) => {
    const gateway = await gateways.start(open);
    const ops = { role: "admin", name: "ops" };
    const { token, key } = (await gateway.call("POST", "/v1/keys", { key: undefined, body: ops })).body;
    expect((await gateway.call("DELETE", `/v1/keys/${key.id}`, { key: token })).status).toBe(204);
    for (const closed of [gateway, await gateways.start(open)]) {
      for (const sent of [undefined, token]) {
        const answer = await closed.call("GET", "/v1/keys", { key: sent });
        expect(answer).toMatchObject({
          status: 401,
          body: { detail: expect.stringContaining("BERTH_ADMIN_KEY") },
        });
      }
    }
    const again = await gateways.start();
    expect((await again.call("POST", "/v1/keys", { body: ops })).status).toBe(201);
  });

  test("a gateway that once had a key stays closed when it is started without the key that was configured before", async ({
    gateways,
  }) => {
    const configured = await gateways.start();
    expect((await configured.call("GET", "/v1/keys")).status).toBe(200);
    const later = await gateways.start(open);
    expect((await later.call("GET", "/v1/keys", { key: undefined })).status).toBe(401);
  });

  test("a gateway that once had a key stays closed when the last one has expired and is no longer listed", async ({
    gateways,
    redis,
  }) => {
    const client = redis.connect();
    const keys = new ApiKeys(client);
    const { key } = await keys.create({ role: "admin", name: "brief" });
    // As it is a week after the key expired; and as versions left it that did not note the first key.
    await client.del(redisKeys.apiKey(key.id), redisKeys.apiKeysMade);
    expect(await keys.list()).toEqual([]);
    expect(await keys.count()).toBe(0);
    const gateway = await gateways.start(open);
    expect((await gateway.call("GET", "/v1/keys", { key: undefined })).status).toBe(401);
  });
});

describe("gateway with keys", () => {
  test("a gateway with keys names every problem of its configuration at once", async ({ gateways }) => {
    const gateway = gateways.spawn({
      BERTH_ADMIN_KEY: "short",
      BERTH_GATEWAY_PORT: "99999",
      BERTH_LOG: "loud",
    });
    expect(await gateway.ended()).toBe(78);
    for (const name of ["BERTH_ADMIN_KEY", "BERTH_GATEWAY_PORT", "BERTH_LOG"])
      expect(gateway.errors).toContain(name);
  });

  test("a gateway refuses an invalid Redis address, and blames the address when Redis refuses the password", async ({
    redis,
    gateways,
  }) => {
    const elsewhere = gateways.spawn({ REDIS_URL: "http://127.0.0.1", BERTH_GATEWAY_PORT: "none" });
    expect(await elsewhere.ended()).toBe(78);
    expect(elsewhere.errors).toMatch(/REDIS_URL: it does not begin with redis:\/\//);
    expect(elsewhere.errors).toContain("BERTH_GATEWAY_PORT");
    const admin = redis.connect();
    await admin.config("SET", "requirepass", "secret-word");
    const refused = gateways.spawn({ BERTH_GATEWAY_PROT: "80", BERTH_LEASE_MS: "5000" });
    expect(await refused.ended()).toBe(78);
    expect(refused.errors).toMatch(/Redis refuses the user name or password.*REDIS_URL/);
    expect(refused.log).toContain("did you mean BERTH_GATEWAY_PORT?");
    expect(refused.log, "another program's variable").not.toContain("BERTH_LEASE_MS");
    await admin.config("SET", "requirepass", "");
  });

  test("a gateway with keys takes no request without a valid key, and does not reveal why a key is bad", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const { body } = await gateway.call("POST", "/v1/keys", { body: { role: "admin", name: "ops" } });
    const bad = [
      undefined,
      "x",
      `${adminKey}x`,
      `${body.token}x`,
      body.token.replace(/.$/, "~"),
      `berth_${"a".repeat(12)}_${"b".repeat(43)}`,
    ];
    const answers = await Promise.all(bad.map((key) => gateway.call("GET", "/v1/keys", { key })));
    expect(answers.map(({ status }) => status)).toEqual(bad.map(() => 401));
    expect(answers[0]?.headers.get("www-authenticate")).toContain("Bearer");
    expect(new Set(answers.slice(1).map(({ body: { detail } }) => detail)).size).toBe(1);
  });

  test("a gateway with keys keeps only a hash of a key, lists it without secrets, and revokes it", async ({
    gateways,
    redis,
  }) => {
    const gateway = await gateways.start();
    const { body } = await gateway.call("POST", "/v1/keys", {
      body: { role: "tenant", tenant: "acme", name: "ci" },
    });
    const secret = body.token.split("_")[2];
    const client = redis.connect();
    const stored = await client.hgetall(redisKeys.apiKey(body.key.id));
    expect(JSON.stringify(stored)).not.toContain(secret);
    const listed = await gateway.call("GET", "/v1/keys");
    expect(listed.body.keys).toMatchObject([{ id: body.key.id, role: "tenant", tenant: "acme", name: "ci" }]);
    expect(JSON.stringify(listed.body)).not.toContain(stored.sha256);
    expect((await gateway.call("GET", "/v1/jobs/unknown", { key: body.token })).status).toBe(404);
    expect((await gateway.call("DELETE", `/v1/keys/${body.key.id}`)).status).toBe(204);
    expect((await gateway.call("GET", "/v1/jobs/unknown", { key: body.token })).status).toBe(401);
  });

  test("a gateway with keys refuses a key that has expired", async ({ gateways }) => {
    const gateway = await gateways.start();
    const order = { role: "admin", name: "brief", expiresInSeconds: 3 };
    const { body } = await gateway.call("POST", "/v1/keys", { body: order });
    expect((await gateway.call("GET", "/v1/keys", { key: body.token })).status).toBe(200);
    await expect
      .poll(async () => (await gateway.call("GET", "/v1/keys", { key: body.token })).status, {
        timeout: 30_000,
      })
      .toBe(401);
  });

  test("a gateway with keys holds a tenant key to its rate and its body size", async ({ gateways }) => {
    const gateway = await gateways.start();
    const order = { role: "tenant", tenant: "acme", name: "slow", rate: 5, bodyBytes: 1_000 };
    const { token: key } = (await gateway.call("POST", "/v1/keys", { body: order })).body;
    const large = await gateway.call("POST", "/v1/jobs", { key, body: { request: "x".repeat(2_000) } });
    expect(large).toMatchObject({ status: 413, body: { code: "body-too-large" } });
    const began = performance.now();
    const many = await Promise.all(
      Array.from({ length: 100 }, () => gateway.call("GET", "/v1/jobs/unknown", { key })),
    );
    const seconds = (performance.now() - began) / 1_000;
    const refused = many.filter(({ status }) => status === 429);
    // Ten at once, and five more in each second that the calls took.
    expect(many.length - refused.length).toBeLessThanOrEqual(10 + 5 * seconds);
    expect(refused[0]?.headers.get("retry-after")).toBe("1");
  });

  test("a gateway with keys writes down what administrators do, without secrets", async ({ gateways }) => {
    const gateway = await gateways.start();
    const { body } = await gateway.call("POST", "/v1/keys", { body: { role: "admin", name: "ops" } });
    await gateway.call("DELETE", `/v1/keys/${body.key.id}`, { key: body.token });
    const { entries } = (await gateway.call("GET", "/v1/audit")).body;
    expect(entries).toMatchObject([
      { action: "key.revoked", actor: body.key.id, target: body.key.id, from: "127.0.0.1" },
      { action: "key.created", actor: "admin", target: body.key.id },
    ]);
    const older = await gateway.call("GET", `/v1/audit?before=${entries[0].id}&limit=1`);
    expect(older.body.entries).toEqual([entries[1]]);
    expect(gateway.log).not.toContain(body.token);
    expect(gateway.log).not.toContain(adminKey);
  });
});

describe("profiles and pools", () => {
  const exec = { request: { kind: "exec", command: "true" } };

  test("every door refuses profiles and pools that were not granted, in the same words as unknown ones", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const order = { role: "tenant", tenant: "acme", name: "plain" };
    const made = (await gateway.call("POST", "/v1/keys", { body: order })).body;
    expect(made.key).toMatchObject({ profiles: ["default"], pools: ["default"] });
    const key = made.token;
    // Another tenant has it: it exists, and acme must not learn that.
    await gateway.call("POST", "/v1/tenants/globex/grant", { body: { profiles: ["net"], pools: ["gpu"] } });
    for (const [what, name] of [
      ["profile", "net"],
      ["profile", "no-such"],
      ["pool", "gpu"],
      ["pool", "no-such"],
    ] as const) {
      const wanted = { ...exec, scope: "session", session: `${what}-${name}`, [what]: name };
      const detail = `the ${what} ${name} is not available to the tenant acme`;
      const refused = { status: 403, body: { code: "forbidden", detail } };
      expect(await gateway.call("POST", "/v1/jobs", { key, body: wanted })).toMatchObject(refused);
      expect(await gateway.call("POST", "/v1/jobs", { key, body: [exec, wanted] })).toMatchObject(refused);
      const schedule = { everyMs: 3_600_000, order: wanted };
      expect(await gateway.call("PUT", "/v1/schedules/s", { key, body: schedule })).toMatchObject(refused);
      const batch = await gateway.call("POST", "/v1/batches", { key, body: { jobs: [wanted] } });
      expect(batch.body).toMatchObject({ refused: 1, finished: 1 });
      const lines = `/v1/batches/${batch.body.id}/results?follow=false`;
      expect(JSON.parse(await (await gateway.fetch("GET", lines, { key })).text()).refused).toBe(detail);
      expect((await gateway.call("POST", "/v1/jobs", { body: { ...wanted, tenant: "acme" } })).status).toBe(
        202,
      );
    }
    const defaults = { ...exec, profile: "default", pool: "default", scope: "session", session: "s" };
    expect((await gateway.call("POST", "/v1/jobs", { key, body: defaults })).status).toBe(202);
  });

  test("profiles and pools are a tenant's by grant and a key's by its making, and gone when the grant is revoked", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const order = { role: "tenant", tenant: "acme", name: "net", profiles: ["net"], pools: ["gpu"] };
    expect(await gateway.call("POST", "/v1/keys", { body: order })).toMatchObject({
      status: 409,
      body: { code: "not-granted", detail: "the profile net is not available to the tenant acme" },
    });
    const admin = { role: "admin", name: "ops", profiles: ["net"] };
    expect((await gateway.call("POST", "/v1/keys", { body: admin })).status).toBe(400);
    const both = { profiles: ["net"], pools: ["gpu"] };
    const granted = await gateway.call("POST", "/v1/tenants/acme/grant", { body: both });
    expect(granted.body).toEqual({ profiles: ["default", "net"], pools: ["default", "gpu"], peers: [] });
    const { token: key, key: made } = (await gateway.call("POST", "/v1/keys", { body: order })).body;
    const plain = { role: "tenant", tenant: "acme", name: "plain" };
    const { token: other } = (await gateway.call("POST", "/v1/keys", { body: plain })).body;
    const listed = (await gateway.call("GET", "/v1/keys")).body.keys;
    expect(listed.find(({ id }: { id: string }) => id === made.id)).toMatchObject({
      profiles: ["default", "net"],
      pools: ["default", "gpu"],
    });
    const wanted = { ...exec, profile: "net", pool: "gpu" };
    expect((await gateway.call("POST", "/v1/jobs", { key, body: wanted })).status).toBe(202);
    expect((await gateway.call("POST", "/v1/jobs", { key: other, body: wanted })).status).toBe(403);
    expect((await gateway.call("GET", "/v1/tenants/acme", { key })).body).toMatchObject(granted.body);
    const left = await gateway.call("POST", "/v1/tenants/acme/revoke", { body: { profiles: ["net"] } });
    expect(left.body).toEqual({ profiles: ["default"], pools: ["default", "gpu"], peers: [] });
    expect((await gateway.call("POST", "/v1/jobs", { key, body: wanted })).status).toBe(403);
    const { entries } = (await gateway.call("GET", "/v1/audit")).body;
    expect(entries).toMatchObject([
      { action: "tenant.ungranted", target: "acme profile:net" },
      { action: "key.created" },
      { action: "key.created" },
      { action: "tenant.granted", target: "acme profile:net pool:gpu" },
    ]);
  });
});

test("the tenant shared is reserved: no key, no job and no schedule can be its", async ({
  gateways,
  redis,
}) => {
  const gateway = await gateways.start();
  const detail = "the tenant id shared is reserved for the sandbox that all tenants share";
  const job = { tenant: "shared", request: { kind: "exec", command: "true" } };
  const asked: [string, string, object?][] = [
    ["POST", "/v1/keys", { role: "tenant", tenant: "shared", name: "x" }],
    ["POST", "/v1/jobs", job],
    ["POST", "/v1/sandbox/bash", { tenant_id: "shared", command: "true" }],
    ["PUT", "/v1/schedules/s", { everyMs: 3_600_000, order: job }],
    ["GET", "/v1/tenants/shared"],
  ];
  for (const [method, path, body] of asked) {
    const answer = await gateway.call(method, path, { body });
    expect(answer, `${method} ${path}`).toMatchObject({ status: 400, body: { code: "invalid-request" } });
    expect(JSON.stringify(answer.body)).toContain(detail);
  }
  // A key that was made for it before opens nothing any more.
  const { token, key } = (
    await gateway.call("POST", "/v1/keys", { body: { role: "tenant", tenant: "acme", name: "old" } })
  ).body;
  await redis.connect().hset(redisKeys.apiKey(key.id), "tenant", "shared");
  expect((await gateway.call("GET", "/v1/jobs/unknown", { key: token })).status).toBe(401);
  // A job of the shared sandbox is its own tenant's, and no other's.
  const keyOf = async (tenant: string) =>
    (await gateway.call("POST", "/v1/keys", { body: { role: "tenant", tenant, name: tenant } })).body.token;
  const [acme, evil] = [await keyOf("acme"), await keyOf("evil")];
  const common = { ...job, tenant: "acme", scope: "shared" };
  const { body } = await gateway.call("POST", "/v1/jobs", { body: common });
  expect(body).toMatchObject({ tenant: "acme", sandbox: "shared.all" });
  expect((await gateway.call("GET", `/v1/jobs/${body.id}`, { key: acme })).status).toBe(200);
  expect((await gateway.call("GET", `/v1/jobs/${body.id}`, { key: evil })).status).toBe(404);
});
