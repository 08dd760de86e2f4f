import { describe, expect, vi } from "vitest";
import { CuttingProxy } from "../../../test/support/cutting-proxy.ts";
import { test } from "../../../test/support/redis.ts";
import { connectRedis } from "../src/connect.ts";
import { listen } from "../src/listening.ts";

const away = { name: "Fault", code: "redis-unreachable", retry: true };

describe("commands connection whose Redis is away", () => {
  test("a commands connection fails a call after its timeout, and does not send it when Redis is back", async ({
    redis,
  }) => {
    const commands = redis.connect();
    await commands.ping();
    commands.options.commandTimeout = 300;
    await redis.kill();
    const failed = Array.from({ length: 50 }, (_, index) => commands.set(`late-${index}`, "x"));
    await Promise.all(failed.map((one) => expect(one).rejects.toMatchObject(away)));
    // Within its timeout a call waits for the connection.
    commands.options.commandTimeout = 30_000;
    const kept = commands.set("kept", "x");
    expect(offlineQueueOf(commands), "calls that failed are not kept").toHaveLength(1);
    await redis.start();
    expect(await kept).toBe("OK");
    expect(await commands.keys("*")).toEqual(["kept"]);
  });

  test("a commands connection does not resend a call that was on its way and has failed since", async ({
    redis,
  }) => {
    const commands = redis.connect();
    await commands.ping();
    commands.options.commandTimeout = 300;
    redis.freeze();
    const sent = commands.rpush("list", "x");
    const piped = commands.pipeline().rpush("list", "y").rpush("list", "z").exec();
    await expect(sent).rejects.toMatchObject(away);
    expect(await piped).toMatchObject([[away], [away]]);
    // Redis never reads what it was sent: its process is gone.
    await redis.kill();
    commands.options.commandTimeout = 30_000;
    await redis.start();
    expect(await commands.lrange("list", 0, -1)).toEqual([]);
  });

  test("a commands connection whose Redis is away fails its calls at once when it is closed", async ({
    redis,
  }) => {
    const commands = redis.connect();
    await commands.ping();
    redis.freeze();
    const sent = commands.ping();
    const lost = new Promise((resolve) => commands.once("reconnecting", resolve));
    await redis.kill();
    await lost;
    const kept = commands.ping();
    const beganMs = performance.now();
    commands.disconnect();
    for (const call of [sent, kept]) await expect(call).rejects.toMatchObject(away);
    expect(performance.now() - beganMs).toBeLessThan(5_000);
  });
});

test("a blocking connection whose Redis is away fails its calls when it is closed", async ({ redis }) => {
  const blocking = redis.connect("blocking");
  await blocking.ping();
  const sent = blocking.bzpopmin("nothing", 60);
  const lost = new Promise((resolve) => blocking.once("reconnecting", resolve));
  await redis.kill();
  await lost;
  const kept = blocking.bzpopmin("nothing", 60);
  blocking.disconnect();
  for (const call of [sent, kept]) await expect(call).rejects.toThrow("Connection is closed.");
});

describe("connection whose peer vanishes without closing it", () => {
  test("a connection whose peer vanishes without closing it is reopened within seconds, and the pending call is answered", async ({
    redis,
  }) => {
    await using proxy = await silentProxy(redis.path);
    for (const role of ["commands", "patient"] as const) {
      const client = connectRedis({ url: `redis://${proxy.address}`, role });
      await client.set("key", role);
      proxy.silence();
      const beganMs = performance.now();
      expect(await client.get("key")).toBe(role);
      expect(performance.now() - beganMs).toBeLessThan(9_000);
      client.disconnect();
    }
  });

  test("a connection that only listens is reopened within seconds when its peer vanishes without closing it", async ({
    redis,
  }) => {
    await using proxy = await silentProxy(redis.path);
    const client = connectRedis({ url: `redis://${proxy.address}`, role: "listening" });
    const stop = new AbortController();
    const received: string[] = [];
    client.on("message", (_channel, text) => received.push(text));
    await listen(client, "news", stop.signal);
    proxy.silence();
    const publisher = redis.connect();
    const isReceived = async () => {
      await publisher.publish("news", "a message");
      return received.length > 0;
    };
    await expect.poll(isReceived, { timeout: 20_000 }).toBe(true);
    stop.abort();
    client.disconnect();
  }, 30_000);

  test("a duplicate for blocking calls is not closed by the socket timeout of its original", async ({
    redis,
  }) => {
    const client = redis.connect();
    client.options.socketTimeout = 100;
    const duplicate = client.duplicate();
    await duplicate.ping();
    let closed = 0;
    duplicate.on("close", () => closed++);
    expect(await duplicate.bzpopmin("nothing", 1)).toBeNull();
    expect(closed).toBe(0);
    duplicate.disconnect();
  });
});

describe("connection that loses Redis", () => {
  test("a connection and its duplicates print nothing to stderr when Redis goes away", async ({ redis }) => {
    const printed = vi.spyOn(console, "error").mockImplementation(() => {});
    const lost = Promise.withResolvers<void>();
    const commands = connectRedis({ url: redis.url, role: "blocking", onOutage: () => lost.resolve() });
    const duplicate = commands.duplicate();
    try {
      await Promise.all([commands.ping(), duplicate.ping()]);
      const reconnecting = new Promise((resolve) => duplicate.once("reconnecting", resolve));
      await redis.kill();
      await Promise.all([lost.promise, reconnecting]);
      // ioredis would print the first failed attempt to reconnect.
      await new Promise((resolve) => duplicate.once("close", resolve));
      expect(printed).not.toHaveBeenCalled();
    } finally {
      printed.mockRestore();
      commands.disconnect();
      duplicate.disconnect();
    }
  });
});

async function silentProxy(path: string) {
  const proxy = new CuttingProxy(path);
  await proxy.start();
  return Object.assign(proxy, { [Symbol.asyncDispose]: () => proxy.stop() });
}

function offlineQueueOf(commands: object): unknown[] {
  return (commands as { offlineQueue: { toArray(): unknown[] } }).offlineQueue.toArray();
}

test("connections that lost Redis at the same moment do not all come back at the same moment", ({
  redis,
}) => {
  const { retryStrategy } = redis.connect().options;
  const pauses = Array.from({ length: 100 }, () => Number(retryStrategy?.(10)));
  expect(new Set(pauses).size).toBeGreaterThan(90);
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(500);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(1_000);
});
