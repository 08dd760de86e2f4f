import type { Redis } from "@berth/redis";
import { describe, expect } from "vitest";
import { BoardQueues } from "../../apps/gateway/src/board/board-queues.ts";
import { busybox } from "../support/fleet.ts";
import { adminKey, type TestGateway, fleetTest as test } from "../support/gateway.ts";

const form = { "content-type": "application/x-www-form-urlencoded" };

/** A browser as far as it matters: it keeps the cookie and says where its requests come from. */
class Visitor {
  readonly #gateway: TestGateway;
  #cookie = "";

  constructor(gateway: TestGateway) {
    this.#gateway = gateway;
  }

  async ask(method: string, path: string, options: { body?: string; headers?: Record<string, string> } = {}) {
    const response = await fetch(`${this.#gateway.url}${path}`, {
      method,
      redirect: "manual",
      headers: {
        cookie: this.#cookie,
        ...(method === "GET" ? {} : { origin: this.#gateway.url }),
        ...options.headers,
      },
      ...(options.body === undefined ? {} : { body: options.body }),
    });
    const set = response.headers.get("set-cookie");
    if (set) this.#cookie = set.split(";")[0] ?? "";
    return response;
  }

  async logIn(key = adminKey): Promise<Response> {
    return this.ask("POST", "/board/login", { body: `key=${encodeURIComponent(key)}`, headers: form });
  }

  // biome-ignore lint/suspicious/noExplicitAny: the dashboard's own shapes
  async queues(): Promise<any[]> {
    return (
      (await (await this.ask("GET", "/board/api/queues?page=1&jobsPerPage=10")).json()) as {
        queues: unknown[];
      }
    ).queues;
  }

  get cookie(): string {
    return this.#cookie;
  }
}

const exec = (tenant: string, command: string, more: object = {}) => ({
  tenant,
  request: { kind: "exec" as const, command },
  ...more,
});

/** Every request of Bull Board's that would change something. */
function changes(...entries: readonly string[]): [method: string, path: string][] {
  const ofQueue = ["pause", "resume", "empty", "obliterate", "promote", "concurrency", "rate-limit"];
  const more = ["rate-limit/release", "clean/failed", "clean/active", "retry/failed", "retry/completed"];
  const schedulers = ["job-schedulers/x/remove", "job-schedulers/x/run"];
  const ofJob = ["retry", "clean", "promote", "remove-unprocessed-children"];
  const found: [string, string][] = [
    ["PUT", "/board/api/queues/pause"],
    ["PUT", "/board/api/queues/resume"],
  ];
  for (const entry of entries) {
    const api = "/board/api/queues";
    const queue = `${api}/${entry.split("/")[0]}`;
    for (const verb of [...ofQueue, ...more, ...schedulers]) found.push(["PUT", `${queue}/${verb}`]);
    found.push(["POST", `${queue}/add`], ["PATCH", `${queue}/job-schedulers/x`]);
    for (const verb of ofJob) found.push(["PUT", `${api}/${entry}/${verb}`]);
    for (const verb of ["update-data", "delay", "priority"]) found.push(["PATCH", `${api}/${entry}/${verb}`]);
  }
  return found;
}

/** All of a tenant's queue and of the dead letters, but for what their worker itself renews. */
async function snapshot(redis: Redis, tenant: string): Promise<Record<string, string>> {
  const found = [
    ...(await redis.keys(`berth:{${tenant}}:jobs:*`)),
    ...(await redis.keys("berth:queue*:dead:*")),
  ];
  const keys = found.filter((key) => !/:(stalled-check|stalled|events)$/.test(key)).sort();
  const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  return Object.fromEntries(keys.map((key, index) => [key, dumps[index]?.toString("hex") ?? ""]));
}

test("all pages that ask a fresh board at once see its queues, and a found tenant is on it from then on", async ({
  fleet,
}) => {
  const berth = fleet.client();
  for (const tenant of ["first", ...Array.from({ length: 20 }, (_, index) => `later-${index}`)])
    await berth.submit(exec(tenant, "true")).enqueued();
  const queues = new BoardQueues(fleet.redis.connect(), berth, { isReadOnly: true });
  const names = (shown: Awaited<ReturnType<BoardQueues["adapters"]>>) => shown.map((one) => one.getName());
  try {
    const [first = [], ...others] = await Promise.all(
      Array.from({ length: 3 }, () => queues.adapters().then(names)),
    );
    expect(first).toContain("tenants:later-19");
    for (const other of others) expect(other).toEqual(first);
    expect(first).not.toContain("tenants:first");
    const [found, shown] = await Promise.all([queues.find("first"), queues.adapters()]);
    expect(names(shown)).toContain("tenants:later-19");
    expect(found).toBe("tenants:first");
    expect(names(await queues.adapters())).toContain("tenants:first");
  } finally {
    queues.close();
  }
});

describe("board", () => {
  test("the board admits only admin keys, and ends the session of a revoked key", async ({ gateways }) => {
    const gateway = await gateways.start();
    const stranger = new Visitor(gateway);
    const led = await stranger.ask("GET", "/board/");
    expect(led.status).toBe(303);
    expect(led.headers.get("location")).toBe("/board/login");
    expect((await stranger.ask("GET", "/board/api/queues")).status).toBe(401);
    expect((await stranger.ask("PUT", "/board/api/queues/fleet%3Adead%20letters/pause")).status).toBe(401);
    expect((await stranger.logIn("wrong")).status).toBe(403);
    const tenant = (
      await gateway.call("POST", "/v1/keys", { body: { role: "tenant", tenant: "acme", name: "t" } })
    ).body;
    expect((await stranger.logIn(tenant.token)).status).toBe(403);
    const admin = (await gateway.call("POST", "/v1/keys", { body: { role: "admin", name: "a" } })).body;
    const entered = await stranger.logIn(admin.token);
    expect(entered.status).toBe(303);
    const cookie = entered.headers.get("set-cookie") ?? "";
    for (const part of ["HttpOnly", "SameSite=Strict", "Path=/board"]) expect(cookie).toContain(part);
    expect(cookie).not.toContain(admin.token);
    const page = await stranger.ask("GET", "/board/");
    expect(await page.text()).toContain("Berth");
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect((await stranger.ask("GET", "/board/api/queues?page=1&jobsPerPage=10")).status).toBe(200);
    await gateway.call("DELETE", `/v1/keys/${admin.key.id}`);
    expect((await stranger.ask("GET", "/board/api/queues?page=1&jobsPerPage=10")).status).toBe(401);
    const { entries } = (await gateway.call("GET", "/v1/audit")).body;
    expect(entries).toContainEqual(expect.objectContaining({ action: "board.login", actor: admin.key.id }));
  });

  test("the board changes nothing for a page of another origin, and its cookie opens nothing else", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    const visitor = new Visitor(gateway);
    await visitor.logIn();
    for (const headers of [
      { origin: "https://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
    ]) {
      const forged = await visitor.ask("PUT", "/board/api/queues/fleet%3Adead%20letters/pause", {
        headers: headers as Record<string, string>,
      });
      expect(forged.status).toBe(403);
    }
    const login = await new Visitor(gateway).ask("POST", "/board/login", {
      body: `key=${adminKey}`,
      headers: { ...form, origin: "https://evil.example" },
    });
    expect(login.status).toBe(403);
    const elsewhere = await gateway.call("GET", "/v1/keys", {
      key: undefined,
      headers: { cookie: visitor.cookie },
    });
    expect(elsewhere.status).toBe(401);
    expect((await visitor.ask("POST", "/board/logout")).headers.get("location")).toBe("/board/login");
    expect((await visitor.ask("GET", "/board/api/queues")).status).toBe(401);
  });

  test("the board shows the fleet's queues and the tenants at work, and one that is asked for, never all", async ({
    fleet,
    gateways,
  }) => {
    const gateway = await gateways.start();
    const client = fleet.redis.connect();
    const known = Array.from({ length: 1_000 }, (_, index) => [index, `old-${index}`]).flat();
    await client.zadd("berth:sandboxes", ...(known as [number, string]));
    await client.zadd("berth:{old-7}:sandboxes", 7, "old-7");
    await gateway.call("POST", "/v1/jobs", { body: exec("acme", "sleep 60") });
    const visitor = new Visitor(gateway);
    await visitor.logIn();
    const shown = await visitor.queues();
    const names = shown.map(({ name }) => name);
    expect(names.slice(0, 3)).toEqual(["fleet:offers", "fleet:schedule", "fleet:dead letters"]);
    expect(names).toContain("tenants:acme");
    expect(names.length).toBeLessThan(30);
    expect(shown.find(({ name }) => name === "tenants:acme").counts).toMatchObject({
      waiting: 1,
    });
    expect(names).not.toContain("tenants:old-7");
    expect((await visitor.ask("GET", "/board/find?tenant=unknown")).status).toBe(404);
    expect((await visitor.ask("GET", "/board/find?tenant=%3Cscript%3E")).status).toBe(404);
    expect((await visitor.ask("GET", "/board/find?tenant=old-7")).status).toBe(303);
    expect((await visitor.queues()).map(({ name }) => name)).toContain("tenants:old-7");
    expect(await client.exists("berth:{old-7}:jobs:meta")).toBe(0);
  });

  test("the board finds tenants by a part of their names, and counts the sandboxes it shows", async ({
    fleet,
    gateways,
  }) => {
    const gateway = await gateways.start();
    const client = fleet.redis.connect();
    const known = Array.from({ length: 30 }, (_, index) => [index, `old-${index}`]).flat();
    await client.zadd("berth:sandboxes", ...(known as [number, string]));
    const visitor = new Visitor(gateway);
    await visitor.logIn();
    const page = async (path: string) => (await visitor.ask("GET", path)).text();
    expect(await page("/board/")).toContain('"label":"20 of 30 sandboxes');
    const found = await page("/board/find?tenant=ld-1");
    expect([...found.matchAll(/\?tenant=(old-\d+)/g)].map(([, name]) => name)).toHaveLength(11);
    expect(found).toContain("20 of 30 sandboxes");
    expect(found).toContain("/board/queue/tenants%3Aold-29");
    await client.zadd("berth:{old-1}:sandboxes", 1, "old-1");
    const exact = await visitor.ask("GET", "/board/find?tenant=old-1");
    expect(exact.headers.get("location")).toBe("/board/queue/tenants%3Aold-1");
  });

  test("the board shows how a job failed and its last lines, and runs it again under a new id", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1", busybox);
    const gateway = await gateways.start();
    const order = exec("acme", "echo compiling; echo 'no such module' >&2; exit 3", { id: "build" });
    const { body: before } = await gateway.call("POST", "/v1/jobs?wait=30", { body: order });
    await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("acme", "true", { id: "good" }) });
    const visitor = new Visitor(gateway);
    await visitor.logIn();
    const acme = async () => (await visitor.queues()).find(({ name }) => name === "tenants:acme");
    expect((await acme()).counts).toMatchObject({ completed: 1, failed: 1 });
    const entry = await (await visitor.ask("GET", "/board/api/queues/tenants%3Aacme/build")).json();
    const { outcome, timing } = before.result;
    expect(entry).toMatchObject({
      status: "failed",
      job: { failedReason: "exited 3", returnValue: { outcome, timing } },
    });
    const logs = await visitor.ask("GET", "/board/api/queues/tenants%3Aacme/build/logs");
    expect(await logs.json()).toEqual(["compiling", "no such module", "[exit 3]"]);

    const retry = (id: string) => visitor.ask("PUT", `/board/api/queues/tenants%3Aacme/${id}/retry`);
    expect((await retry("build")).status).toBe(204);
    const again = await gateway.call("GET", "/v1/jobs/build-redrive-1?wait=30");
    expect(again.body).toMatchObject({ state: "finished", result: { outcome } });
    expect((await gateway.call("GET", "/v1/jobs/build")).body, "the old record").toEqual(before);
    expect((await acme()).counts).toMatchObject({ completed: 1, failed: 2 });
    const succeeded = await retry("good");
    expect([succeeded.status, await succeeded.json()]).toMatchObject([409, { code: "conflict" }]);
    expect((await retry("unknown")).status).toBe(404);

    const all = await visitor.ask("PUT", "/board/api/queues/tenants%3Aacme/retry/failed");
    expect(await all.json(), "one of two was run again before").toEqual({ retried: 1, skipped: 1 });
    expect((await gateway.call("GET", "/v1/jobs/build-redrive-2?wait=30")).body.state).toBe("finished");
    const { entries } = (await gateway.call("GET", "/v1/audit")).body;
    for (const target of ["build as build-redrive-1", "1 failed of tenants:acme"])
      expect(entries).toContainEqual(
        expect.objectContaining({ action: "job.redriven", actor: "admin", target }),
      );
  });

  test("the board shows jobs that wait for an approval with what they would run, and decides about them", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1", busybox);
    const [gateway, looking] = [await gateways.start(), await gateways.start({ BERTH_BOARD: "read-only" })];
    const berth = fleet.client();
    await berth.profiles.set("tenant.acme", { rules: [{ approval: { commands: ["deploy"] } }] });
    const first = await berth.tenant("acme").exec("deploy '<b>'; echo went").enqueued();
    const second = await berth.tenant("acme").exec("deploy", { session: "b" }).enqueued();
    await expect.poll(() => berth.approvals.list()).toHaveLength(2);
    const visitor = new Visitor(gateway);
    expect((await visitor.ask("GET", "/board/approvals")).headers.get("location")).toBe("/board/login");
    await visitor.logIn();
    const page = await (await visitor.ask("GET", "/board/approvals")).text();
    expect(page).toContain("deploy '&lt;b&gt;'; echo went");
    const digests = [
      ...page.matchAll(/name="job" value="([^"]+)"><input type="hidden" name="digest" value="([^"]+)"/g),
    ];
    const seen = new Map(digests.map(([, job = "", digest = ""]) => [job, digest]));
    const decide = (who: Visitor, job: string, decision: string, headers: Record<string, string> = form) =>
      who.ask("POST", "/board/approvals", {
        body: new URLSearchParams({ job, digest: seen.get(job) ?? "", decision, reason: "no" }).toString(),
        headers,
      });
    const onlyLooks = new Visitor(looking);
    await onlyLooks.logIn();
    expect(await (await onlyLooks.ask("GET", "/board/approvals")).text()).not.toContain("<form");
    expect((await decide(onlyLooks, first.id, "approve")).status).toBe(405);
    expect((await decide(new Visitor(gateway), first.id, "approve")).status).toBe(401);
    expect(
      (await decide(visitor, first.id, "approve", { ...form, origin: "https://evil.example" })).status,
    ).toBe(403);
    expect((await decide(visitor, first.id, "constructor")).status).toBe(400);
    expect((await decide(visitor, "none", "approve")).status).toBe(409);
    expect(await berth.approvals.list()).toHaveLength(2);
    expect((await decide(visitor, first.id, "approve")).status).toBe(303);
    expect(await first.result).toMatchObject({ value: { stdout: "went\n" } });
    expect((await decide(visitor, second.id, "refuse")).status).toBe(303);
    expect((await second.result).outcome).toMatchObject({ kind: "refused", code: "approval-refused" });
    expect(await (await visitor.ask("GET", "/board/approvals")).text()).toContain("No job waits");
    const { entries } = (await gateway.call("GET", "/v1/audit")).body;
    expect(entries.map(({ action }: { action: string }) => action)).toEqual(
      expect.arrayContaining(["job.approved", "job.refused"]),
    );
  });

  test("the board runs nothing again beyond the limits of the fleet, and names the limit", async ({
    fleet,
    gateways,
  }) => {
    const gateway = await gateways.start();
    await gateway.call("POST", "/v1/jobs", { body: exec("acme", "true", { id: "unwanted" }) });
    await gateway.call("DELETE", "/v1/jobs/unwanted");
    await fleet.redis.connect().hset("berth:settings", "maxWaitingPerSandbox", "0");
    const visitor = new Visitor(gateway);
    await visitor.logIn();
    await visitor.queues();
    const full = await visitor.ask("PUT", "/board/api/queues/tenants%3Aacme/unwanted/retry");
    expect(full.status).toBe(429);
    // What Bull Board's page shows in its corner.
    expect(await full.json()).toMatchObject({ code: "sandbox-full", error: expect.any(String) });
    expect((await gateway.call("GET", "/v1/jobs/unwanted-redrive-1")).status).toBe(404);
  });

  test("the board runs a dead letter again, and changes nothing else, and nothing at all when it may only look", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1", busybox);
    const gateway = await gateways.start();
    const looking = await gateways.start({ BERTH_BOARD: "read-only" });
    const order = exec("acme", "exit 1", { retry: { attempts: 2, backoffMs: 0 } });
    const { id } = (await gateway.call("POST", "/v1/jobs?wait=30", { body: order })).body;
    const visitor = new Visitor(gateway);
    await visitor.logIn();
    const dead = async () => (await visitor.queues()).find(({ name }) => name === "fleet:dead letters");
    await expect.poll(async () => (await dead())?.counts.failed).toBe(1);
    const reader = new Visitor(looking);
    await reader.logIn();
    const keys = await snapshot(fleet.redis.connect(), "acme");
    const letter = `fleet%3Adead%20letters/d-${id}`;
    for (const [method, path] of changes(letter, `tenants%3Aacme/${id}`)) {
      expect((await reader.ask(method, path)).status, `read-only: ${method} ${path}`).toBe(405);
      if (!path.includes("retry"))
        expect((await visitor.ask(method, path)).status, `${method} ${path}`).toBe(405);
    }
    expect(await snapshot(fleet.redis.connect(), "acme")).toEqual(keys);

    const retried = await visitor.ask("PUT", `/board/api/queues/${letter}/retry`, {
      body: "{}",
      headers: { "content-type": "application/json" },
    });
    expect(retried.status).toBe(204);
    expect((await gateway.call("GET", `/v1/jobs/${id}-redrive-1?wait=30`)).body.state).toBe("finished");
    const { entries } = (await gateway.call("GET", "/v1/audit")).body;
    const target = `${id} as ${id}-redrive-1`;
    expect(entries).toContainEqual(
      expect.objectContaining({ action: "dead-letter.redriven", actor: "admin", target }),
    );
    await expect.poll(async () => (await dead())?.counts.failed).toBe(1);
    const all = await visitor.ask("PUT", "/board/api/queues/fleet%3Adead%20letters/retry/failed");
    expect(await all.json()).toEqual({ retried: 1, skipped: 0 });
  });

  test("the board is not there when it is switched off", async ({ gateways }) => {
    const gateway = await gateways.start({ BERTH_BOARD: "off" });
    expect((await gateway.call("GET", "/board/login")).status).toBe(404);
  });
});
