import { describe, expect } from "vitest";
import { adminKey, test } from "../support/gateway.ts";

describe("a gateway without keys", () => {
  test("listens on loopback and says that it is open", async ({ gateways }) => {
    const gateway = await gateways.start({ BERTH_ADMIN_KEY: "" });
    await expect.poll(() => gateway.log).toContain("gateway.open");
    expect((await gateway.call("GET", "/v1/keys", { key: undefined })).status).toBe(200);
  });

  test("refuses to start on another address, with exit code 78 and the reason", async ({ gateways }) => {
    const gateway = gateways.spawn({ BERTH_ADMIN_KEY: "", BERTH_GATEWAY_HOST: "0.0.0.0" });
    expect(await gateway.ended()).toBe(78);
    expect(gateway.errors).toContain("BERTH_GATEWAY_HOST: 0.0.0.0 is reachable from elsewhere");
  });

  test("closes as soon as there is a key, and the first key must be an admin's", async ({ gateways }) => {
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

describe("a gateway with keys", () => {
  test("names every problem of its configuration at once", async ({ gateways }) => {
    const gateway = gateways.spawn({
      BERTH_ADMIN_KEY: "short",
      BERTH_GATEWAY_PORT: "99999",
      BERTH_LOG: "loud",
    });
    expect(await gateway.ended()).toBe(78);
    for (const name of ["BERTH_ADMIN_KEY", "BERTH_GATEWAY_PORT", "BERTH_LOG"])
      expect(gateway.errors).toContain(name);
  });

  test("takes no request without a good key, and says nothing about why a key is bad", async ({
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

  test("keeps only a hash of a key, lists it without secrets, and revokes it", async ({
    gateways,
    redis,
  }) => {
    const gateway = await gateways.start();
    const { body } = await gateway.call("POST", "/v1/keys", {
      body: { role: "tenant", tenant: "acme", name: "ci" },
    });
    const secret = body.token.split("_")[2];
    const client = redis.connect();
    const stored = await client.hgetall(`berth:api-key:${body.key.id}`);
    expect(JSON.stringify(stored)).not.toContain(secret);
    const listed = await gateway.call("GET", "/v1/keys");
    expect(listed.body.keys).toMatchObject([{ id: body.key.id, role: "tenant", tenant: "acme", name: "ci" }]);
    expect(JSON.stringify(listed.body)).not.toContain(stored.sha256);
    expect((await gateway.call("GET", "/v1/jobs/nobody", { key: body.token })).status).toBe(404);
    expect((await gateway.call("DELETE", `/v1/keys/${body.key.id}`)).status).toBe(204);
    expect((await gateway.call("GET", "/v1/jobs/nobody", { key: body.token })).status).toBe(401);
  });

  test("refuses a key that has expired", async ({ gateways }) => {
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

  test("holds a tenant key to its rate and its body size", async ({ gateways }) => {
    const gateway = await gateways.start();
    const order = { role: "tenant", tenant: "acme", name: "slow", rate: 5, bodyBytes: 1_000 };
    const { token: key } = (await gateway.call("POST", "/v1/keys", { body: order })).body;
    const large = await gateway.call("POST", "/v1/jobs", { key, body: { request: "x".repeat(2_000) } });
    expect(large).toMatchObject({ status: 413, body: { code: "body-too-large" } });
    const began = performance.now();
    const many = await Promise.all(
      Array.from({ length: 100 }, () => gateway.call("GET", "/v1/jobs/nobody", { key })),
    );
    const seconds = (performance.now() - began) / 1_000;
    const refused = many.filter(({ status }) => status === 429);
    // Ten at once, and five more in each second that the calls took.
    expect(many.length - refused.length).toBeLessThanOrEqual(10 + 5 * seconds);
    expect(refused[0]?.headers.get("retry-after")).toBe("1");
  });

  test("writes down what administrators do, without secrets", async ({ gateways }) => {
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
