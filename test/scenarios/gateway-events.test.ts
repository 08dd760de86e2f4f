import { describe, expect } from "vitest";
import { fleetTest as test } from "../support/gateway.ts";
import { listen, type SseRead } from "../support/sse.ts";

const exec = (command: string, more: object = {}) => ({
  tenant: "acme",
  request: { kind: "exec", command },
  ...more,
});
const types = ({ events }: SseRead) => events.map(({ event }) => event);
const text = ({ events }: SseRead) => events.map(({ data }) => data.text ?? "").join("");

describe("job's events over HTTP", () => {
  test("a job's events over HTTP come as they happen, end after the last, and resume behind any of them", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const { id } = (
      await gateway.call("POST", "/v1/jobs", { body: exec("for i in 1 2 3; do echo $i; sleep 0.3; done") })
    ).body;
    const all = await listen(gateway, `/v1/jobs/${id}/events`);
    expect(types(all)).toEqual(["started", "stdout", "stdout", "stdout", "finished"]);
    expect(text(all)).toBe("1\n2\n3\n");
    expect(all.events.at(-1)?.data.result.outcome).toEqual({ kind: "exited", code: 0 });
    const headers = { "last-event-id": all.events[2]?.id ?? "" };
    const rest = await listen(gateway, `/v1/jobs/${id}/events`, { headers });
    expect(rest.events).toEqual(all.events.slice(3));
    const other = await gateways.start();
    expect((await listen(other, `/v1/jobs/${id}/events?after=${all.events[0]?.id}`)).events).toEqual(
      all.events.slice(1),
    );
    const over = { headers: { "last-event-id": all.events[4]?.id ?? "" } };
    expect((await gateway.call("GET", `/v1/jobs/${id}/events`, over)).status).toBe(204);
  });

  test("output that is not text comes as base64, whole", async ({ fleet, gateways }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const { id } = (
      await gateway.call("POST", "/v1/jobs", { body: exec("printf '\\377\\000\\n\\n: x\\ndata: y'") })
    ).body;
    const { events } = await listen(gateway, `/v1/jobs/${id}/events`);
    const output = events.filter(({ event }) => event === "stdout");
    const bytes = Buffer.concat(output.map(({ data }) => Buffer.from(data.text, data.encoding)));
    expect(bytes).toEqual(Buffer.from("\xff\0\n\n: x\ndata: y", "latin1"));
  });

  test("a quiet stream has a heartbeat, and a stopping gateway asks its listeners to reconnect", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start({ BERTH_GATEWAY_HEARTBEAT_MS: "200" });
    const { id } = (await gateway.call("POST", "/v1/jobs", { body: exec("echo up; sleep 3; echo down") }))
      .body;
    let read: SseRead = { events: [], comments: [], retries: [] };
    const listening = listen(gateway, `/v1/jobs/${id}/events`, {}, (now) => {
      read = now;
      return false;
    });
    await expect.poll(() => read.comments.length).toBeGreaterThan(2);
    await expect.poll(() => types(read)).toContain("stdout");
    const ended = gateway.stop();
    const seen = await listening;
    expect(seen.retries).toContain(1_000);
    expect(seen.comments.at(-1)).toContain("reconnect");
    expect(types(seen)).not.toContain("finished");
    expect(await ended).toBe(0);
    const next = await gateways.start();
    const headers = { "last-event-id": seen.events.at(-1)?.id ?? "" };
    const rest = await listen(next, `/v1/jobs/${id}/events`, { headers });
    expect(text(seen) + text(rest)).toBe("up\ndown\n");
  });

  test("two hundred listeners on one job cost one reader of Redis", async ({
    fleet,
    gateways,
    topology,
    skip,
  }) => {
    skip(topology === "cluster", "it counts the connections of one server");
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const client = fleet.redis.connect();
    const readers = async () =>
      ((await client.client("LIST")) as string).split("\n").filter((line) => /cmd=xread /.test(line)).length;
    const before = ((await client.client("LIST")) as string).trim().split("\n").length;
    const { id } = (await gateway.call("POST", "/v1/jobs", { body: exec("sleep 4; echo heard by all") }))
      .body;
    const reads = Array.from({ length: 200 }, () => listen(gateway, `/v1/jobs/${id}/events`));
    await expect
      .poll(
        async () => Number(/event_streams (\d+)/.exec((await gateway.call("GET", "/metrics")).body)?.[1]),
        { timeout: 30_000 },
      )
      .toBe(200);
    expect(await readers()).toBe(1);
    expect(((await client.client("LIST")) as string).trim().split("\n").length).toBeLessThanOrEqual(
      before + 1,
    );
    const heard = await Promise.all(reads);
    expect(heard.map(text)).toEqual(heard.map(() => "heard by all\n"));
  });

  test("a key that is revoked loses the streams it opened", async ({ gateways }) => {
    const gateway = await gateways.start({ BERTH_GATEWAY_HEARTBEAT_MS: "200" });
    const order = { role: "tenant", tenant: "acme", name: "listener" };
    const { token, key } = (await gateway.call("POST", "/v1/keys", { body: order })).body;
    const { id } = (
      await gateway.call("POST", "/v1/jobs", {
        key: token,
        body: { request: { kind: "exec", command: "true" } },
      })
    ).body;
    const listening = listen(gateway, `/v1/jobs/${id}/events`, { key: token });
    await expect.poll(async () => (await gateway.call("GET", "/metrics")).body).toContain("event_streams 1");
    await gateway.call("DELETE", `/v1/keys/${key.id}`);
    expect((await listening).events).toEqual([]);
  });
});
