import { JobEvents } from "@berth/ledger";
import { redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { type TestGateway, fleetTest as test } from "../support/gateway.ts";
import { listen } from "../support/sse.ts";

async function tenantKey(gateway: TestGateway, tenant: string): Promise<string> {
  return (await gateway.call("POST", "/v1/keys", { body: { role: "tenant", tenant, name: tenant } })).body
    .token;
}

describe("tenant's key", () => {
  test("a tenant's key opens its own tenant without naming it, and nothing of another's", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const [acme, evil] = [await tenantKey(gateway, "acme"), await tenantKey(gateway, "evil")];
    const exec = { request: { kind: "exec", command: "echo secret | tee out.txt", artifacts: ["out.txt"] } };
    const job = (await gateway.call("POST", "/v1/jobs?wait=30", { key: acme, body: exec })).body;
    expect(job).toMatchObject({ tenant: "acme", state: "finished" });
    const [artifact] = job.result.value.artifacts;
    const batch = (await gateway.call("POST", "/v1/batches", { key: acme, body: { jobs: [exec] } })).body;
    const schedule = { everyMs: 3_600_000, order: exec };
    expect((await gateway.call("PUT", "/v1/schedules/nightly", { key: acme, body: schedule })).status).toBe(
      200,
    );
    await gateway.call("POST", "/v1/sandbox/bash", {
      key: acme,
      body: { session_id: "s1", command: "true" },
    });

    const own = [
      `/v1/jobs/${job.id}`,
      `/v1/jobs/${job.id}/why`,
      `/v1/artifacts/${artifact.id}`,
      `/v1/batches/${batch.id}`,
      `/v1/batches/${batch.id}/results?follow=false`,
      "/v1/schedules/nightly",
      "/v1/tenants/acme",
    ];
    for (const path of own) expect((await gateway.fetch("GET", path, { key: acme })).status, path).toBe(200);
    const { ceilings } = (await gateway.call("GET", "/v1/tenants/acme", { key: acme })).body;
    const workspaces = { ceiling: "workspaceBytes", used: expect.any(Number), limit: 20 * 1024 ** 3 };
    expect(ceilings).toContainEqual(workspaces);
    const results = ceilings.find((use: { ceiling: string }) => use.ceiling === "resultBytes");
    expect(results).toMatchObject({ limit: 512 * 1024 ** 2 });
    expect(results.used).toBeGreaterThan(100);
    const denied: [string, string, object?][] = [
      ["GET", `/v1/jobs/${job.id}`],
      ["GET", `/v1/jobs/${job.id}?wait=1`],
      ["GET", `/v1/jobs/${job.id}/why`],
      ["GET", `/v1/jobs/${job.id}/events`],
      ["DELETE", `/v1/jobs/${job.id}`],
      ["GET", `/v1/artifacts/${artifact.id}`],
      ["GET", `/v1/batches/${batch.id}`],
      ["GET", `/v1/batches/${batch.id}/results`],
      ["DELETE", `/v1/batches/${batch.id}`],
      ["GET", "/v1/schedules/nightly"],
      ["POST", "/v1/schedules/nightly/pause"],
      ["POST", "/v1/schedules/nightly/resume"],
      ["DELETE", "/v1/schedules/nightly"],
      ["PUT", "/v1/schedules/acme.nightly", schedule],
      ["GET", "/v1/schedules/acme.nightly"],
      ["DELETE", "/v1/schedules/acme.nightly"],
      ["PUT", "/v1/schedules/other", { ...schedule, order: { ...exec, tenant: "acme" } }],
      ["GET", "/v1/tenants/acme"],
      ["GET", "/v1/jobs?tenant=acme"],
      ["POST", "/v1/jobs", { ...exec, tenant: "acme" }],
      ["POST", "/v1/jobs", [exec, { ...exec, tenant: "acme" }]],
      ["POST", "/v1/jobs", { ...exec, scope: "shared" }],
      ["PUT", "/v1/schedules/shared", { ...schedule, order: { ...exec, scope: "shared" } }],
      ["POST", "/v1/jobs", { ...exec, id: `acme.${job.id}` }],
      ["POST", "/v1/sandbox/sessions/acme/s1/copy", { files: [{ path: "x", content: "x" }] }],
      ["DELETE", "/v1/sandbox/sessions/acme/s1"],
      ...[
        "execute",
        "bash",
        "read",
        "read_binary",
        "write",
        "grep",
        "glob",
        "edit",
        "patch",
        "list",
        "stat",
      ].map((name): [string, string, object] => ["POST", `/v1/sandbox/${name}`, sandboxBody(name)]),
    ];
    for (const [method, path, body] of denied) {
      const answer = await gateway.call(method, path, { key: evil, body });
      expect([400, 403, 404], `${method} ${path}: ${JSON.stringify(answer.body)}`).toContain(answer.status);
      expect(JSON.stringify(answer.body)).not.toContain("secret");
    }
    const empty = {
      "/v1/batches": "batches",
      "/v1/schedules": "schedules",
      "/v1/sandbox/sessions": "sessions",
    };
    for (const [path, name] of Object.entries(empty)) {
      expect((await gateway.call("GET", path, { key: evil })).body[name], path).toEqual([]);
      expect((await gateway.call("GET", path, { key: acme })).body[name].length, path).toBeGreaterThan(0);
    }
    const refused = await gateway.call("POST", "/v1/batches", {
      key: evil,
      body: { jobs: [{ ...exec, tenant: "acme" }] },
    });
    expect(refused.body).toMatchObject({ refused: 1, finished: 1 });
    const seen = await listen(gateway, `/v1/jobs/${job.id}/events`, { key: acme });
    expect(seen.events.at(-1)?.event).toBe("finished");
    expect((await gateway.call("GET", `/v1/jobs/${job.id}`, { key: acme })).body.result.outcome).toEqual({
      kind: "exited",
      code: 0,
    });
  });

  test("a tenant's key may not administer anything", async ({ gateways }) => {
    const gateway = await gateways.start();
    const key = await tenantKey(gateway, "acme");
    const admin: [string, string, object?][] = [
      ["GET", "/v1/keys"],
      ["POST", "/v1/keys", { role: "admin", name: "mine" }],
      ["POST", "/v1/keys", { role: "tenant", tenant: "acme", name: "mine" }],
      ["DELETE", `/v1/keys/${key.split("_")[1]}`],
      ["GET", "/v1/audit"],
      ["GET", "/v1/fleet/workers"],
      ["GET", "/v1/fleet/sandboxes"],
      ["GET", "/v1/fleet/scale"],
      ["POST", "/v1/fleet/workers/worker-1/drain"],
      ["GET", "/v1/dead-letters"],
      ["POST", "/v1/dead-letters/x/redrive"],
      ["DELETE", "/v1/dead-letters/x"],
      ["POST", "/v1/tenants/acme/pause"],
      ["POST", "/v1/tenants/acme/resume"],
      ["DELETE", "/v1/tenants/acme"],
      ["GET", "/metrics"],
    ];
    for (const [method, path, body] of admin) {
      expect((await gateway.call(method, path, { key, body })).status, `${method} ${path}`).toBe(403);
    }
  });

  test("a tenant's key makes an Idempotency-Key its own: another tenant's same key is another job", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const [acme, evil] = [await tenantKey(gateway, "acme"), await tenantKey(gateway, "evil")];
    const call = (key: string) =>
      gateway.call("POST", "/v1/jobs", {
        key,
        body: { request: { kind: "exec", command: "true" } },
        headers: { "idempotency-key": "same" },
      });
    const [one, two] = [await call(acme), await call(evil)];
    expect(one.status).toBe(202);
    expect(two.status).toBe(202);
    expect(one.body.id).not.toBe(two.body.id);
  });

  test("the key of a tenant called admin is no admin key, and shares no batch with admins", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const key = await tenantKey(gateway, "admin");
    const order = { tenant: "admin", request: { kind: "exec", command: "true" } };
    const headers = { "idempotency-key": "same" };
    const theirs = await gateway.call("POST", "/v1/batches", { body: { jobs: [order] }, headers });
    const own = await gateway.call("POST", "/v1/batches", { key, body: { jobs: [order] }, headers });
    expect(own.body.id).not.toBe(theirs.body.id);
    expect((await gateway.call("GET", `/v1/batches/${theirs.body.id}`, { key })).status).toBe(404);
    expect((await gateway.call("GET", "/v1/keys", { key })).status).toBe(403);
  });
});

describe("what a tenant's key learns of the fleet", () => {
  const secrets = /rival|\/var\/lib|worker-7|host-7|payroll/;
  const trouble = "the sandbox rival.s.payroll did not start: /var/lib/berth/workspaces is full";
  const sandbox = sandboxKey.parse("acme");
  const exec = { request: { kind: "exec", command: "true" } };

  test("a tenant's key learns why its job waits, without workers, hosts and other tenants' sandboxes", async ({
    fleet,
    gateways,
  }) => {
    const gateway = await gateways.start();
    const redis = fleet.redis.connect();
    const key = await tenantKey(gateway, "acme");
    const { id } = (await gateway.call("POST", "/v1/jobs", { key, body: exec })).body;
    const lease = redisKeys.lease(sandbox);
    const now = Number((await redis.time())[0]) * 1_000;
    const worker = { host: "host-7", pools: "default", slots: "1", health: trouble };
    await redis.zadd(redisKeys.workers, now + 60_000, "worker-7");
    await redis.hset(redisKeys.worker("worker-7"), worker);
    const seesOnly = async (code: string) => {
      const own = await gateway.call("GET", `/v1/jobs/${id}/why`, { key });
      const full = await gateway.call("GET", `/v1/jobs/acme.${id}/why`);
      expect(own.body.codes).toContain(code);
      expect(full.body.codes).toEqual(own.body.codes);
      expect(own.body.reasons).toHaveLength(own.body.codes.length);
      expect(JSON.stringify(own.body)).not.toMatch(secrets);
      expect(JSON.stringify(full.body)).toMatch(secrets);
    };
    await seesOnly("no-engine");
    await redis.hset(lease, { trouble });
    await seesOnly("sandbox-trouble");
    await redis.hset(lease, { home: "host-8-of-the-rival" });
    await seesOnly("host-offline");
    await redis.hset(lease, { worker: "worker-7", deadline: now + 60_000, home: "host-7" });
    await seesOnly("sandbox-held");
    for (const [path, list] of [
      ["/v1/tenants/acme", "sandboxes"],
      ["/v1/sandbox/sessions", "sessions"],
    ] as const) {
      const own = await gateway.call("GET", path, { key });
      expect(own.body).toHaveProperty(list);
      expect(JSON.stringify(own.body), path).not.toMatch(secrets);
    }
    expect(JSON.stringify((await gateway.call("GET", "/v1/tenants/acme")).body)).toMatch(secrets);
  });

  test("a tenant's key learns how its job ended, without a fault's words about the machines", async ({
    fleet,
    gateways,
  }) => {
    const gateway = await gateways.start();
    const redis = fleet.redis.connect();
    const key = await tenantKey(gateway, "acme");
    const batch = (await gateway.call("POST", "/v1/batches", { key, body: { jobs: [exec] } })).body;
    const jobId = `${batch.id}-0`;
    await redis.hset(redisKeys.lease(sandbox), { epoch: 1, instance: "a", worker: "worker-7" });
    const outcome = { kind: "refused", code: "workspace-unusable", message: trouble } as const;
    const refused = { outcome, value: {}, timing: { wallMs: 0, cpuMs: 0 } };
    const reason = "the artifact directory /var/lib/berth/artifacts cannot be used: it is full";
    const notKept = { path: "out.txt", code: "not-kept", reason } as const;
    const events = new JobEvents(redis);
    await events.publish({ key: sandbox, epoch: 1, instance: "a", jobId }, [
      { type: "started", worker: "worker-7", epoch: 1, atMs: 1, attempt: 1 },
      {
        type: "finished",
        result: {
          ...refused,
          value: { steps: [refused], artifactsRefused: [notKept] },
          worker: "worker-7",
          host: "host-7",
        },
      },
    ]);
    for (const path of [`/v1/jobs/${jobId}`, `/v1/jobs/${jobId}/events`, `/v1/batches/${batch.id}/results`]) {
      const read = async (options: object) => (await gateway.fetch("GET", path, options)).text();
      const own = await read({ key });
      expect(own, path).toContain("workspace-unusable");
      expect(own, path).not.toMatch(secrets);
      expect(await read({}), path).toContain(trouble);
    }
  });
});

function sandboxBody(name: string): object {
  const more: Record<string, object> = {
    execute: { code: "1" },
    bash: { command: "true" },
    write: { path: "x", content: "x" },
    grep: { pattern: "secret" },
    glob: { pattern: "*" },
    edit: { path: "x", old_text: "a", new_text: "b" },
    patch: { diff: "x" },
    list: {},
  };
  return { tenant_id: "acme", session_id: "s1", ...(more[name] ?? { path: "out.txt" }) };
}
