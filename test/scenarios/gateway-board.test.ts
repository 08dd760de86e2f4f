import { describe, expect } from "vitest";
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
  request: { kind: "exec", command },
  ...more,
});

describe("the board", () => {
  test("lets nobody in without an admin key, and forgets whose key was revoked", async ({ gateways }) => {
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

  test("changes nothing for a page of another origin, and its cookie opens nothing else", async ({
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

  test("shows the fleet's queues and the tenants at work, and one that is asked for, never all", async ({
    fleet,
    gateways,
  }) => {
    const gateway = await gateways.start();
    const client = fleet.redis.connect();
    const known = Array.from({ length: 1_000 }, (_, index) => [index, `old-${index}`]).flat();
    await client.zadd("berth:sandboxes", ...(known as [number, string]));
    await client.zadd("berth:sandboxes:old-7", 7, "old-7");
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
    expect((await visitor.ask("GET", "/board/find?tenant=nobody")).status).toBe(404);
    expect((await visitor.ask("GET", "/board/find?tenant=%3Cscript%3E")).status).toBe(404);
    expect((await visitor.ask("GET", "/board/find?tenant=old-7")).status).toBe(303);
    expect((await visitor.queues()).map(({ name }) => name)).toContain("tenants:old-7");
    expect(await client.exists("berth:{old-7}:jobs:meta")).toBe(0);
  });

  test("runs a dead letter again, but touches no tenant's queue, and nothing when it may only look", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
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
    for (const path of [
      "/board/api/queues/fleet%3Adead%20letters/pause",
      `/board/api/queues/fleet%3Adead%20letters/d-${id}/retry/failed`,
      "/board/api/queues/fleet%3Adead%20letters/obliterate",
    ]) {
      expect((await reader.ask("PUT", path)).status, path).toBeGreaterThanOrEqual(400);
    }
    for (const verb of ["pause", "empty", "obliterate", "promote"]) {
      for (const queue of ["tenants:acme", "fleet:offers", "fleet:schedule"]) {
        expect(
          (await visitor.ask("PUT", `/board/api/queues/${encodeURIComponent(queue)}/${verb}`)).status,
        ).toBe(405);
      }
    }
    const retried = await visitor.ask("PUT", `/board/api/queues/fleet%3Adead%20letters/d-${id}/retry`, {
      body: "{}",
      headers: { "content-type": "application/json" },
    });
    expect(retried.status).toBeLessThan(300);
    await expect.poll(async () => (await gateway.call("GET", `/v1/jobs/${id}-redrive-1`)).status).toBe(200);
    const { entries } = (await gateway.call("GET", "/v1/audit")).body;
    expect(entries).toContainEqual(expect.objectContaining({ action: "board.changed", actor: "admin" }));
  });

  test("is not there when it is switched off", async ({ gateways }) => {
    const gateway = await gateways.start({ BERTH_BOARD: "off" });
    expect((await gateway.call("GET", "/board/login")).status).toBe(404);
  });
});
