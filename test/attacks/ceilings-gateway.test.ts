import { connect } from "node:net";
import { describe, expect } from "vitest";
import { fleetTest, type TestGateway, test } from "../support/gateway.ts";

const request = { kind: "exec", command: "true" } as const;

/** As many keys of the tenant's as it likes: none of its ceilings is one key's. */
async function keysOf(gateway: TestGateway, count: number): Promise<string[]> {
  const made = Array.from({ length: count }, (_, at) =>
    gateway.call("POST", "/v1/keys", { body: { role: "tenant", tenant: "evil", name: `k${at}` } }),
  );
  return (await Promise.all(made)).map(({ body }) => body.token);
}

async function give(gateway: TestGateway, ceilings: object): Promise<void> {
  const { status } = await gateway.call("PUT", "/v1/profiles/tenant.evil", { body: { ceilings } });
  expect(status).toBe(200);
}

const full = (ceiling: string, limit: number) => ({
  status: 429,
  body: { code: "tenant-full", detail: expect.stringContaining(`its ceiling ${ceiling} is ${limit}`) },
});

describe("tenant with many keys", () => {
  test("a tenant with many keys opens no more event streams at a gateway than its ceiling, and others open theirs", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    await give(gateway, { streams: 2 });
    const [one = "", two = "", three = ""] = await keysOf(gateway, 3);
    const { id } = (await gateway.call("POST", "/v1/jobs", { key: one, body: { request } })).body;
    const leave = new AbortController();
    const open = (key?: string) =>
      gateway.fetch("GET", `/v1/jobs/${id}/events`, { ...(key ? { key } : {}), signal: leave.signal });
    expect([(await open(one)).status, (await open(two)).status]).toEqual([200, 200]);
    expect(await gateway.call("GET", `/v1/jobs/${id}/events`, { key: three })).toMatchObject(
      full("streams", 2),
    );
    const all = (await gateway.call("POST", "/v1/jobs", { body: { tenant: "acme", request } })).body.id;
    expect((await gateway.fetch("GET", `/v1/jobs/${all}/events`, { signal: leave.signal })).status).toBe(200);
    leave.abort();
  });

  test("a tenant with many keys waits for no more jobs at a gateway than its ceiling, by any route, and a refused request submits nothing", async ({
    gateways,
    redis,
  }) => {
    const gateway = await gateways.start();
    await give(gateway, { waits: 2 });
    const [one = "", two = "", three = ""] = await keysOf(gateway, 3);
    const leave = new AbortController();
    const wait = (key: string) =>
      gateway
        .fetch("POST", "/v1/jobs?wait=60", { key, body: { request }, signal: leave.signal })
        .catch(() => undefined);
    const waiting = [wait(one), wait(two)];
    const waits = async () =>
      /berth_http_waits (\d+)/.exec((await gateway.call("GET", "/metrics")).body)?.[1];
    await expect.poll(waits).toBe("2");
    const client = redis.connect();
    await expect.poll(() => client.zcard("berth:unfinished")).toBe(2);
    const [id] = await client.zrange("berth:unfinished", "0", "0");
    const shown = String(id).replace(/^evil\./, "");
    for (const [method, path, body] of [
      ["POST", "/v1/jobs?wait=60", { request }],
      ["GET", `/v1/jobs/${shown}?wait=60`, undefined],
      ["POST", "/v1/sandbox/bash", { command: "true" }],
    ] as const)
      expect(await gateway.call(method, path, { key: three, body }), path).toMatchObject(full("waits", 2));
    expect(await client.zcard("berth:unfinished")).toBe(2);
    // Without a wait there is nothing to bound.
    expect((await gateway.call("POST", "/v1/jobs", { key: three, body: { request } })).status).toBe(202);
    leave.abort();
    await Promise.all(waiting);
    await expect.poll(waits).toBe("0");
  });

  test("a tenant with many keys has no more bytes of bodies in a gateway than its ceiling, and the refusal names the ceiling and whether a retry helps", async ({
    gateways,
  }) => {
    const gateway = await gateways.start();
    await give(gateway, { bodyBytes: 4_000 });
    const [one = "", two = ""] = await keysOf(gateway, 2);
    const body = (bytes: number) => ({ request: { kind: "exec", command: `: ${"x".repeat(bytes)}` } });
    const alone = await gateway.call("POST", "/v1/jobs", { key: one, body: body(5_000) });
    expect(alone).toMatchObject({
      status: 413,
      body: { code: "body-too-large", detail: expect.stringContaining("4000 bytes that evil may have") },
    });
    expect(alone.headers.get("retry-after")).toBeNull();
    // A body that is not at its end holds what came of it.
    const head = `POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${one}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 3500\r\n\r\n`;
    const hold = () => {
      const socket = connect(gateway.port, "127.0.0.1");
      socket.on("error", () => {});
      // It came while another body was there, and was itself the one too much.
      socket.on("data", () => socket.destroy());
      socket.write(head + "x".repeat(3_000));
      return socket;
    };
    let held = hold();
    const beside = () => gateway.call("POST", "/v1/jobs", { key: two, body: body(2_000) });
    const besideHeld = () => {
      if (held.destroyed) held = hold();
      return beside();
    };
    await expect.poll(besideHeld).toMatchObject(full("bodyBytes", 4_000));
    expect((await beside()).headers.get("retry-after")).toBe("1");
    held.destroy();
    await expect.poll(async () => (await beside()).status).toBe(202);
  });
});

describe("tenant that wants another pool", () => {
  fleetTest(
    "a tenant that wants another pool than its own runs nothing in it, by the gateway, by Redis or in a sandbox that is there",
    async ({ fleet, gateways }) => {
      await fleet.worker("special", { BERTH_IMAGE: "berth-busybox:test", BERTH_POOLS: "default,gpu" });
      const gateway = await gateways.start();
      const [key = ""] = await keysOf(gateway, 1);
      const order = { request, pool: "gpu" };
      expect(await gateway.call("POST", "/v1/jobs", { key, body: order })).toMatchObject({
        status: 403,
        body: { code: "forbidden", detail: "the pool gpu is not available to the tenant evil" },
      });
      const schedule = await gateway.call("PUT", "/v1/schedules/s", {
        key,
        body: { everyMs: 60_000, order },
      });
      expect(schedule.status).toBe(403);
      const berth = fleet.client();
      const refused = {
        ...{ kind: "refused", code: "not-granted" },
        message: "the pool gpu is not available to the tenant evil",
      };
      const evil = berth.tenant("evil");
      expect((await evil.exec("touch in", { pool: "gpu" })).outcome).toMatchObject(refused);
      expect((await evil.exec("touch in")).outcome).toMatchObject(refused);
      expect((await berth.tenant("acme").exec("echo served")).stdout).toBe("served\n");
      expect((await fleet.containers()).map(({ key }) => key)).toEqual(["acme"]);
    },
  );
});
