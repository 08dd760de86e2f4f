import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectRedis, type Redis } from "@berth/redis";
import { test as base, expect } from "vitest";

/** `cluster`: of one node, which has all slots and refuses calls that span several. */
export type TestTopology = "single" | "cluster";

async function ownAllSlots(node: Redis): Promise<void> {
  const info = async () => String(await node.call("CLUSTER", "INFO"));
  if ((await info()).includes("cluster_slots_assigned:0"))
    await node.call("CLUSTER", "ADDSLOTSRANGE", 0, 16_383);
  await expect.poll(info).toContain("cluster_state:ok");
}

/** A redis-server of one test file's own, on a socket nobody else knows, with everything on disk that a fleet would have. */
export class TestRedis {
  readonly directory: string;
  #server: ChildProcess | undefined;
  #cutter: Redis | undefined;
  #frozen = false;
  readonly #clients = new Set<Redis>();
  /** Of the port that nodes of a cluster talk over, which is the same for all of them. */
  readonly #address = ["127", ...randomBytes(3)].join(".");

  readonly #topology: TestTopology;

  constructor(directory: string, topology: TestTopology = "single") {
    this.directory = directory;
    this.#topology = topology;
  }

  get path(): string {
    return join(this.directory, "redis.sock");
  }

  get url(): string {
    return `unix://${this.path}`;
  }

  async start(): Promise<void> {
    const options = ["--port", "0", "--unixsocket", this.path, "--dir", this.directory];
    const policy = ["--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction"];
    const cluster = this.#topology === "cluster" ? ["--cluster-enabled", "yes", "--bind", this.#address] : [];
    this.#server = spawn("redis-server", [...options, ...policy, ...cluster], { stdio: "ignore" });
    const probe = connectRedis({ url: this.url, role: "blocking" });
    await probe.ping();
    if (this.#topology === "cluster") await ownAllSlots(probe);
    probe.disconnect();
  }

  connect(role: "commands" | "blocking" = "commands"): Redis {
    const client = connectRedis({ url: this.url, role });
    this.#clients.add(client);
    return client;
  }

  /**
   * kill -9. What Redis has acknowledged is in its append-only file by then: with `everysec` Redis puts off its writes
   * while the disk is busy, and a test that counts on them would fail there.
   */
  async kill(): Promise<void> {
    if (!this.#frozen) await this.#flush();
    await this.#end("SIGKILL");
  }

  freeze(): void {
    this.#frozen = true;
    this.#server?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#frozen = false;
    this.#server?.kill("SIGCONT");
  }

  /** With `always`, Redis writes everything before it sends its next answer. */
  async #flush(): Promise<void> {
    const client = connectRedis({ url: this.url, role: "blocking" });
    await client.config("SET", "appendfsync", "always");
    client.disconnect();
  }

  /** As with a full disk: it answers, and refuses every write (MISCONF), since it could not save. */
  async refuseWrites(): Promise<void> {
    this.#cutter ??= this.connect();
    // A directory where it wants to put its snapshot. Without a rule for saving it would not mind.
    await mkdir(join(this.directory, "dump.rdb", "in-the-way"), { recursive: true });
    await this.#cutter.config("SET", "save", "86400 1");
    await this.#saves("err");
  }

  async acceptWrites(): Promise<void> {
    await rm(join(this.directory, "dump.rdb"), { recursive: true });
    await this.#saves("ok");
  }

  async #saves(status: "ok" | "err"): Promise<void> {
    await this.#cutter?.bgsave();
    const saved = async () => (await this.#cutter?.info("persistence"))?.includes(`bgsave_status:${status}`);
    await expect.poll(saved, { timeout: 30_000 }).toBe(true);
  }

  /** Cuts every connection but its own; how many those were. */
  async cut(): Promise<number> {
    this.#cutter ??= this.connect();
    let cut = 0;
    for (const type of ["normal", "pubsub"])
      cut += Number(await this.#cutter.call("CLIENT", "KILL", "TYPE", type));
    return cut;
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    await this.#end("SIGKILL");
    await rm(this.directory, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server || server.exitCode !== null) return;
    const gone = new Promise((resolve) => server.once("exit", resolve));
    server.kill(signal);
    await gone;
  }
}

export const test = base.extend<{ topology: TestTopology; redis: TestRedis }>({
  topology: process.env.BERTH_TEST_REDIS === "cluster" ? "cluster" : "single",
  redis: [
    async ({ topology }, use) => {
      const redis = new TestRedis(await mkdtemp(join(tmpdir(), "berth-redis-")), topology);
      await redis.start();
      try {
        await use(redis);
      } finally {
        await redis.stop();
      }
    },
    { scope: "test" },
  ],
});
