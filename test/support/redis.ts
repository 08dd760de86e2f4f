import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Acceptance } from "@berth/protocol";
import { connectRedis, primariesOf, type Redis } from "@berth/redis";
import { test as base, expect } from "vitest";
import type { RedisServer } from "./redis-server.ts";
import { partsOf, type RedisParts, type Secured, type TestTopology } from "./redis-topologies.ts";

export type { TestTopology };

/** A Redis of one test's own, at an address that no other test uses. */
export class TestRedis {
  readonly directory: string;
  readonly #parts: RedisParts;
  readonly #clients = new Set<Redis>();
  #isPrepared = false;

  constructor(directory: string, topology: TestTopology = "single", secured?: Secured) {
    this.directory = directory;
    this.#parts = partsOf(topology, directory, secured);
  }

  get url(): string {
    return this.#parts.url;
  }

  /** Of a single Redis' socket. */
  get path(): string {
    return this.url.replace("unix://", "");
  }

  /** Starts what does not run. */
  async start(): Promise<void> {
    const { servers, sentinels, prepare, settled } = this.#parts;
    if (!this.#isPrepared) await prepare();
    this.#isPrepared = true;
    await Promise.all([...servers, ...sentinels].filter(({ alive }) => !alive).map((one) => one.start()));
    await settled();
  }

  connect(role: "commands" | "blocking" = "commands", accept?: Acceptance): Redis {
    const client = connectRedis({ url: this.url, role, accept });
    this.#clients.add(client);
    if (this.#parts.servers.length > 1) spread(client);
    return client;
  }

  /**
   * kill -9 of all of it. What Redis has acknowledged is in its append-only file by then: with `everysec` Redis puts off its writes
   * while the disk is busy, and a test that counts on them would fail there.
   */
  async kill(): Promise<void> {
    await this.#each((server) => server.flush());
    await this.#each((server) => server.kill());
  }

  /** kill -9 of the primary that has a key. What its replica did not get is gone. */
  async killPrimary(key: string): Promise<RedisServer> {
    const primary = await this.primaryOf(key);
    await primary.kill();
    return primary;
  }

  /** kill -9 of the primary that has a key, and before of its replica, which would take its place. Both have all on their disks. */
  async killWithReplica(key: string): Promise<RedisServer[]> {
    const primary = await this.primaryOf(key);
    const pair = [...(await this.#replicasOf(primary)), primary];
    for (const server of pair) {
      await server.flush();
      await server.kill();
    }
    return pair;
  }

  /** The replica of the primary that has a key gets nothing from now on: what that primary acknowledges, it takes to its grave. */
  async cutReplication(key: string): Promise<void> {
    const primary = await this.primaryOf(key);
    for (const replica of await this.#replicasOf(primary))
      await replica.ask((redis) => redis.config("SET", "masterauth", "none-is-set"));
    await primary.ask((redis) => redis.call("CLIENT", "KILL", "TYPE", "replica"));
    await expect
      .poll(() => primary.ask((redis) => redis.info("replication")))
      .toContain("connected_slaves:0");
  }

  /** Starts a dead primary again, as a replica of the one that has its place, and waits until that one has it as such. */
  async bringBack(dead: RedisServer, key: string): Promise<void> {
    let primary = dead;
    await expect
      .poll(async () => {
        primary = await this.primaryOf(key).catch(() => dead);
        return primary;
      })
      .not.toBe(dead);
    await dead.start();
    // Sentinels would do it ten seconds later.
    const { hostname: host, port } = new URL(primary.url);
    if (this.#parts.sentinels.length > 0) await dead.ask((redis) => redis.replicaof(host, port));
    await expect.poll(() => primary.ask((redis) => redis.info("replication"))).toMatch(/state=online/);
  }

  async primaryOf(key: string): Promise<RedisServer> {
    for (const server of await this.#primaries())
      if (typeof (await server.ask((redis) => redis.exists(key).catch(String))) === "number") return server;
    throw new Error(`no primary has ${key}`);
  }

  /** Moves the hash slot of a key to another primary of the cluster. `halfway`: while either has some of its keys. */
  async moveSlot(key: string, halfway: () => Promise<unknown>): Promise<void> {
    const from = await this.primaryOf(key);
    const slot = await from.ask((redis) => redis.cluster("KEYSLOT", key));
    const primaries = await this.#primaries();
    const to = primaries.find((one) => one !== from);
    if (!to) throw new Error("there is no other primary");
    const idOf = (server: RedisServer) => server.ask((redis) => redis.cluster("MYID"));
    const { hostname: host, port } = new URL(to.url);
    const toId = await idOf(to);
    const set = (server: RedisServer, state: string, id: string) =>
      server.ask((redis) => redis.call("CLUSTER", "SETSLOT", slot, state, id));
    const move = (share: number) =>
      from.ask(async (redis) => {
        const keys = (await redis.call("CLUSTER", "GETKEYSINSLOT", slot, 10_000)) as string[];
        const moved = keys.slice(0, Math.ceil(keys.length * share));
        if (moved.length > 0) await redis.call("MIGRATE", host, port, "", 0, 10_000, "KEYS", ...moved);
        return moved.length;
      });
    await set(to, "IMPORTING", await idOf(from));
    await set(from, "MIGRATING", toId);
    await move(0.5);
    await halfway();
    while ((await move(1)) > 0);
    for (const server of [to, from, ...primaries]) await set(server, "NODE", toId);
  }

  async #primaries(): Promise<RedisServer[]> {
    const found: RedisServer[] = [];
    for (const server of this.#parts.servers.filter(({ alive }) => alive))
      if (((await server.ask((redis) => redis.role())) as unknown[])[0] === "master") found.push(server);
    return found;
  }

  async #replicasOf(primary: RedisServer): Promise<RedisServer[]> {
    const { port } = new URL(primary.url);
    const found: RedisServer[] = [];
    for (const server of this.#parts.servers.filter(({ alive }) => alive)) {
      const [role, , of] = (await server.ask((redis) => redis.role())) as unknown[];
      if (role === "slave" && String(of) === port) found.push(server);
    }
    return found;
  }

  freeze(): void {
    for (const server of this.#parts.servers) server.freeze();
  }

  thaw(): void {
    for (const server of this.#parts.servers) server.thaw();
  }

  /** As with a full disk: it answers, and refuses every write (MISCONF), since it could not save. */
  async refuseWrites(): Promise<void> {
    await Promise.all((await this.#primaries()).map((server) => server.refuseWrites()));
  }

  async acceptWrites(): Promise<void> {
    await Promise.all((await this.#primaries()).map((server) => server.acceptWrites()));
  }

  /** Cuts every connection but its own; how many those were. */
  async cut(): Promise<number> {
    const cuts = await this.#each((server) =>
      server.ask(async (redis) => {
        let cut = 0;
        for (const type of ["normal", "pubsub"])
          cut += Number(await redis.call("CLIENT", "KILL", "TYPE", type));
        return cut;
      }),
    );
    return cuts.reduce((sum, one) => sum + one, 0);
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    await Promise.all([...this.#parts.sentinels, ...this.#parts.servers].map((one) => one.kill()));
    await rm(this.directory, { recursive: true, force: true });
  }

  #each<T>(call: (server: RedisServer) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#parts.servers.map(call));
  }
}

/** What is about a server and not about a key is said to every primary of a cluster. */
function spread(client: Redis): void {
  const everywhere = async <T>(ask: (primary: Redis) => Promise<T>): Promise<T[]> => {
    await client.ping();
    return Promise.all(primariesOf(client).map(ask));
  };
  Object.assign(client, {
    keys: async (pattern: string) => (await everywhere((primary) => primary.call("KEYS", pattern))).flat(),
    config: async (...args: string[]) => (await everywhere((primary) => primary.call("CONFIG", args)))[0],
    flushall: async () => (await everywhere((primary) => primary.call("FLUSHALL")))[0],
  });
}

/** `npm run test:cluster` runs every test that does not choose for itself on a cluster. */
const chosen = process.env.BERTH_TEST_REDIS === "cluster" ? "cluster" : "single";

export const test = base.extend<{ topology: TestTopology; redis: TestRedis }>({
  topology: chosen,
  redis: [
    async ({ topology }, use) => {
      const redis = new TestRedis(await mkdtemp(join(tmpdir(), "berth-redis-")), topology);
      try {
        await redis.start();
        await use(redis);
      } finally {
        await redis.stop();
      }
    },
    { scope: "test" },
  ],
});
