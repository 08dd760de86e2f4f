import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { redisKeys } from "@berth/protocol";
import { expect } from "vitest";
import { type TestGateway, test } from "../support/gateway.ts";

/** A batch that is over as soon as it is made. */
const jobs = [{ nonsense: true }];

async function tenantKey(gateway: TestGateway, tenant: string): Promise<string> {
  return (await gateway.call("POST", "/v1/keys", { body: { role: "tenant", tenant, name: tenant } })).body
    .token;
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

test("a tenant whose receivers never answer delays its own webhooks only, and fills no gateway", {
  timeout: 90_000,
}, async ({ gateways }) => {
  const open = new Set<Socket>();
  let mostAtOnce = 0;
  // It takes the request, and says nothing.
  const tarpit = createServer(() => {}).on("connection", (socket: Socket) => {
    open.add(socket);
    mostAtOnce = Math.max(mostAtOnce, open.size);
    socket.once("close", () => open.delete(socket));
  });
  let taken = 0;
  const receiver = createServer((_, response) => {
    taken++;
    response.end();
  });
  try {
    const [slow, quick] = [await listening(tarpit), await listening(receiver)];
    const gateway = await gateways.start({ BERTH_WEBHOOK_ALLOW: "127.0.0.0/8" });
    const [evil, acme] = [await tenantKey(gateway, "evil"), await tenantKey(gateway, "acme")];
    const batch = async (key: string, webhook: string) =>
      await gateway.call("POST", "/v1/batches", { key, body: { jobs, webhook } });
    for (let count = 0; count < 40; count++) expect((await batch(evil, slow)).status).toBe(202);
    await expect.poll(() => open.size, { timeout: 30_000 }).toBeGreaterThan(0);
    const evilsFirst = [...open][0];
    const { id } = (await batch(acme, quick)).body;
    await expect.poll(() => taken, { timeout: 30_000, interval: 20 }).toBe(1);
    // Nothing of the other's had to end for that: its first call is still open.
    expect(evilsFirst && open.has(evilsFirst)).toBe(true);
    const delivered = async () => (await gateway.call("GET", `/v1/batches/${id}`)).body.webhook?.state;
    await expect.poll(delivered, { timeout: 30_000 }).toBe("delivered");
    // Its second handful comes when the deadline has ended the first, and is no larger.
    await expect.poll(() => evilsFirst && open.has(evilsFirst), { timeout: 30_000 }).toBe(false);
    await expect.poll(() => open.size, { timeout: 30_000 }).toBeGreaterThan(0);
    expect(mostAtOnce).toBeLessThanOrEqual(4);
  } finally {
    tarpit.closeAllConnections();
    tarpit.close();
    receiver.close();
  }
});

test("a batch's report of a failed webhook names no address, and not whether a name has one", async ({
  gateways,
  redis,
}) => {
  const gateway = await gateways.start();
  const client = redis.connect();
  const problemOf = async (webhook: string) => {
    const { id } = (await gateway.call("POST", "/v1/batches", { body: { jobs, webhook } })).body;
    const said = async () => (await client.hget(redisKeys.batch(id), "webhookProblem")) ?? "";
    await expect.poll(said, { timeout: 30_000 }).not.toBe("");
    return said();
  };
  const refused = await problemOf("http://10.2.3.4/");
  for (const host of ["localhost", "no-such-host", "no-such-host.invalid", "169.254.169.254"])
    expect(await problemOf(`http://${host}/`), host).toBe(refused);
  expect(refused).not.toMatch(/\d/);
});

test("a tenant with as many waiting calls as it may have makes no further batch with a webhook", async ({
  gateways,
  redis,
}) => {
  const gateway = await gateways.start();
  const evil = await tenantKey(gateway, "evil");
  const settings = { ceilings: { webhooks: 3 } };
  expect((await gateway.call("PUT", "/v1/profiles/tenant.evil", { body: settings })).status).toBe(200);
  const batch = (webhook?: string) =>
    gateway.call("POST", "/v1/batches", { key: evil, body: { jobs, ...(webhook ? { webhook } : {}) } });
  const waiting = () => redis.connect().zcard(redisKeys.webhooksOf("evil"));
  for (let count = 1; count <= 3; count++) {
    expect((await batch("http://no-such-host.invalid/")).status).toBe(202);
    await expect.poll(waiting).toBe(count);
  }
  const full = await batch("http://no-such-host.invalid/");
  expect(full).toMatchObject({ status: 429, body: { code: "tenant-full" } });
  expect(full.body.detail).toContain("calls of webhooks that wait");
  expect((await batch()).status).toBe(202);
  const { ceilings } = (await gateway.call("GET", "/v1/tenants/evil", { key: evil })).body;
  expect(ceilings).toContainEqual({ ceiling: "webhooks", used: 3, limit: 3 });
});
