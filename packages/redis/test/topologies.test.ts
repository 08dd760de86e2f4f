import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, describe, expect, test } from "vitest";
import { TestRedis, test as withRedis } from "../../../test/support/redis.ts";
import {
  checkRedis,
  connectRedis,
  failsOver,
  onReconnect,
  primariesOf,
  topologyOf,
  withoutPassword,
} from "../src/index.ts";

const onCluster = withRedis.extend({ topology: "cluster" });
const withSentinel = withRedis.extend({ topology: "sentinel" });
const withinMs = 60_000;

describe("a connection to a cluster", () => {
  onCluster(
    "a connection to a cluster reaches the keys of every node, and goes on when a primary dies",
    async ({ redis }) => {
      const client = redis.connect();
      expect(topologyOf(client)).toBe("cluster");
      expect(failsOver(client)).toBe(true);
      expect((await checkRedis(client, redis.url)).version).toMatch(/^\d/);
      const keys = Array.from({ length: 30 }, (_, index) => `key-${index}`);
      await Promise.all(keys.map((key) => client.set(key, key)));
      const blocking = redis.connect("blocking");
      const popped = blocking.bzpopmin("key-30", 60);
      // A failover may lose what the replica has not acknowledged. Replication keeps the order, so it now has every earlier write, too.
      await (await redis.primaryOf("key-0")).ask(async (primary) => {
        await primary.set("key-0", "key-0");
        expect(await primary.wait(1, 30_000)).toBe(1);
      });
      await redis.killPrimary("key-0");
      const beganMs = performance.now();
      expect(await Promise.all(keys.map((key) => client.get(key)))).toEqual(keys);
      await client.zadd("key-30", 1, "member");
      expect(await popped).toEqual(["key-30", "member", "1"]);
      expect(performance.now() - beganMs).toBeLessThan(withinMs);
    },
  );
});

describe("a reconnect listener on a cluster", () => {
  onCluster(
    "a reconnect listener on a cluster is called when a replica has become a primary",
    async ({ redis }) => {
      const client = redis.connect();
      await client.ping();
      const primaries = () => primariesOf(client).map(({ options }) => options.port ?? 0);
      const before = primaries();
      const heard: number[] = [];
      onReconnect(client, () => heard.push(...primaries()));
      await redis.killPrimary("key");
      const promoted = () => heard.filter((port) => !before.includes(port)).length;
      await expect.poll(promoted).toBeGreaterThan(0);
    },
  );
});

describe("a connection to a cluster that is closed during a topology refresh", () => {
  onCluster(
    "a cluster connection that is closed during a topology refresh stops refreshing and keeps no process alive",
    async ({ redis }) => {
      const client = redis.connect();
      await client.ping();
      const kept = client as unknown as {
        readonly isRefreshing: boolean;
        readonly slotsTimer: object | null;
      };
      const isLooking = (wanted: boolean) =>
        expect.poll(() => kept.isRefreshing, { interval: 0 }).toBe(wanted);
      await isLooking(true);
      client.disconnect();
      await isLooking(false);
      expect(kept.slotsTimer).toBe(null);
    },
  );
});

describe.each(["single", "cluster", "sentinel"] as const)("a connection to a %s", (topology) => {
  withRedis.extend({ topology })(
    "a connection that was closed carries out calls when it is opened again",
    async ({ redis }) => {
      const client = connectRedis({ url: redis.url, role: "blocking" });
      await client.set("key", "value");
      const ended = once(client, "end");
      client.disconnect();
      await ended;
      await client.connect();
      expect(await client.get("key")).toBe("value");
      client.disconnect();
    },
  );

  withRedis.extend({ topology })(
    "a connection that was closed before it was established fails every call, later ones included",
    async ({ redis }) => {
      const client = connectRedis({ url: redis.url, role: "blocking" });
      const early = client.get("key");
      client.disconnect();
      await expect(early).rejects.toThrow("closed");
      await expect(client.get("key")).rejects.toThrow("closed");
      await new Promise(setImmediate);
      await expect(client.get("key")).rejects.toThrow("closed");
    },
  );
});

describe("connection through Sentinels", () => {
  withSentinel(
    "a connection through Sentinels goes on with the replica when the primary dies",
    async ({ redis }) => {
      const client = redis.connect();
      const blocking = redis.connect("blocking");
      expect(failsOver(client)).toBe(true);
      await client.set("key", "value");
      // A failover may lose what the replica has not acknowledged.
      expect(await client.wait(1, 30_000)).toBe(1);
      const popped = blocking.bzpopmin("queue", 60);
      await redis.killPrimary("key");
      const beganMs = performance.now();
      expect(await client.get("key")).toBe("value");
      await client.zadd("queue", 1, "member");
      expect(await popped).toEqual(["queue", "member", "1"]);
      expect(performance.now() - beganMs).toBeLessThan(withinMs);
    },
  );
});

describe.each(["cluster", "sentinel"] as const)("a %s with TLS and users", (topology) => {
  afterAll(() => setDefaultCACertificates(getCACertificates("bundled")));

  test(`a ${topology} with TLS accepts the right password, and the error for a wrong one names the cause`, async () => {
    const directory = await mkdtemp(join(tmpdir(), "berth-redis-tls-"));
    const secured = { user: "berth", password: "p@ss", certificates: certify(directory) };
    const redis = new TestRedis(directory, topology, secured);
    setDefaultCACertificates([
      ...getCACertificates("bundled"),
      readFileSync(join(directory, "ca.pem"), "utf8"),
    ]);
    try {
      await redis.start();
      const client = redis.connect();
      expect(await client.set("key", "value")).toBe("OK");
      expect(await redis.connect("blocking").get("key")).toBe("value");
      expect(withoutPassword(redis.url)).not.toContain(encodeURIComponent("p@ss"));
      const refused = Promise.withResolvers<string>();
      const wrong = connectRedis({
        url: redis.url.replaceAll("p%40ss", "wrong"),
        role: "commands",
        onOutage: ({ detail }) => refused.resolve(detail),
      });
      expect(await refused.promise).toMatch(/WRONGPASS|invalid username-password/);
      wrong.disconnect();
      // As a worker's connection, whose calls wait for a Redis that is away.
      const patient = connectRedis({ url: redis.url.replaceAll("p%40ss", "wrong"), role: "patient" });
      await expect(checkRedis(patient, redis.url)).rejects.toMatchObject({ code: "redis-unauthorized" });
      patient.disconnect();
    } finally {
      await redis.stop();
    }
  });
});

/** Creates a certificate authority in that directory. The returned function issues a certificate for an address. */
function certify(directory: string) {
  const files = {
    ca: join(directory, "ca.pem"),
    cert: join(directory, "cert.pem"),
    key: join(directory, "key.pem"),
  };
  const caKey = join(directory, "ca-key.pem");
  const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: "ignore" });
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  openssl("req", "-x509", ...newKey, "-keyout", caKey, "-out", files.ca, "-subj", "/CN=a test's authority");
  let address: string | undefined;
  return (of: string) => {
    if (of === address) return files;
    address = of;
    const named = ["-subj", "/CN=redis", "-addext", `subjectAltName=IP:${of}`];
    const signed = ["-CA", files.ca, "-CAkey", caKey];
    openssl("req", "-x509", ...newKey, "-keyout", files.key, "-out", files.cert, ...named, ...signed);
    return files;
  };
}
