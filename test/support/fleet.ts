import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Berth, type BerthOptions } from "@berth/client";
import { fleetId, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { DockerDriver, type ParkedSandbox, type SandboxRecord } from "@berth/sandbox";
import { expect } from "vitest";
import { readConfig } from "../../apps/worker/src/config.ts";
import { type History, type HistoryJob, readHistory } from "./history.ts";
import { breachesOf, type HistoryRules } from "./history-rules.ts";
import { startProgram } from "./program.ts";
import { type TestRedis, test as withRedis } from "./redis.ts";

let made = 0;

/** Two megabytes and a shell: for tests that start many sandboxes. */
export const busybox = { BERTH_IMAGE: "berth-busybox:test" } as const;

/** What a worker may take to stop, on a loaded machine: its jobs are over or not waited for. */
const stopWithinMs = 40_000;

/** A worker process of the test's own. */
export class TestWorker {
  readonly id: string;
  readonly process: ChildProcess;
  #log = "";

  constructor(id: string, env: Record<string, string>) {
    this.id = id;
    this.process = startProgram("apps/worker/src/main.ts", {
      env: { PATH: process.env.PATH ?? "", ...env, BERTH_WORKER_ID: id },
    });
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.#log += chunk;
      });
    }
  }

  get alive(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null;
  }

  get log(): string {
    return this.#log;
  }

  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** Its exit code, or the signal that ended it. */
  async ended(): Promise<number | string> {
    if (this.alive) await once(this.process, "exit");
    return this.process.exitCode ?? this.process.signalCode ?? "gone";
  }

  /** Tells it to stop. Its id if it did not within that time, and had to be killed. */
  async stopped(withinMs: number): Promise<string[]> {
    this.signal("SIGCONT");
    this.signal("SIGTERM");
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.signal("SIGKILL");
    }, withinMs);
    await this.ended();
    clearTimeout(timer);
    return late ? [this.id] : [];
  }
}

/** Workers, clients and a Redis of one test's own. What is left when the test ends makes it fail. */
export class TestFleet {
  readonly redis: TestRedis;
  readonly name = `test-${process.pid}-${Date.now().toString(36)}-f${made++}`;
  readonly #directory: string;
  readonly #workers: TestWorker[] = [];
  readonly #clients: Berth[] = [];
  readonly #hosts = new Set<string>();
  #observing: Redis | undefined;
  #closing: Promise<void> | undefined;
  /** Where workers find their engine; a test with an engine of its own sets it before it starts any. */
  engineHost = process.env.DOCKER_HOST;

  constructor(redis: TestRedis, directory: string) {
    this.redis = redis;
    this.#directory = directory;
  }

  async worker(id: string, env: Record<string, string> = {}): Promise<TestWorker> {
    const worker = this.launch(id, env);
    // One that ended will say no more.
    const begun = () => worker.log.includes("worker.started") || !worker.alive;
    await expect.poll(begun, { timeout: 60_000 }).toBe(true);
    expect(worker.log).toContain("worker.started");
    return worker;
  }

  /** Starts one without waiting for it: it may not want to. */
  launch(id: string, env: Record<string, string> = {}): TestWorker {
    this.#hosts.add(env.BERTH_HOST ?? thisHost());
    const worker = new TestWorker(id, {
      REDIS_URL: this.redis.url,
      ...(this.engineHost ? { DOCKER_HOST: this.engineHost } : {}),
      BERTH_FLEET: this.name,
      BERTH_WORKSPACES: this.workspaces,
      BERTH_ARTIFACTS: join(this.#directory, "artifacts"),
      BERTH_LEASE_MS: "6000",
      BERTH_SWEEP_MS: "500",
      // Tests count containers. Those of the warm pool say how many they want.
      BERTH_WARM_COUNT: "0",
      ...env,
    });
    this.#workers.push(worker);
    return worker;
  }

  client(options: Omit<BerthOptions, "redis"> = {}): Berth {
    const client = new Berth({ redis: this.redis.url, ...options });
    this.#clients.push(client);
    return client;
  }

  /** Those that serve a sandbox which a worker holds, or that a dead worker left. */
  async containers(): Promise<SandboxRecord[]> {
    const before = await this.parked();
    const all = await this.#listed();
    // One that was parked while the engine made its list is not to be taken for held.
    const parked = new Set([...before, ...(await this.parked())].map(({ containerId }) => containerId));
    return all.filter(({ id }) => !parked.has(id));
  }

  /** Whose a container of a warm pool is, the drivers of its host know. */
  async #listed(): Promise<SandboxRecord[]> {
    const hosts = this.#hosts.size === 0 ? [undefined] : [...this.#hosts];
    const lists = await Promise.all(hosts.map((host) => this.#driver(host).list()));
    const all = lists.flat().sort((a, b) => a.key.length - b.key.length);
    return [...new Map(all.map((one) => [one.id, one])).values()];
  }

  /** Those that wait for their sandbox's next holder. */
  async parked(): Promise<ParkedSandbox[]> {
    return (await Promise.all([...this.#hosts].map((host) => this.#driver(host).parked()))).flat();
  }

  /** The ends of the workers' logs, for a test that failed, and before them how they lost Redis, leases or jobs. */
  lastWords(): string {
    const tells = (line: string) => /"(redis\.lost|tenancy\.fenced)"|"outcome":"lost"/.test(line);
    const tails = this.#workers.map(({ id, log }) => {
      const lines = log.split("\n");
      return [`${id}:`, ...lines.slice(0, -12).filter(tells), ...lines.slice(-12)].join("\n");
    });
    return tails.join("\n");
  }

  get workspaces(): string {
    return join(this.#directory, "workspaces");
  }

  async history(jobs: readonly HistoryJob[]): Promise<History> {
    const alive = new Set(this.#workers.filter((worker) => worker.alive).map(({ id }) => id));
    // What a dead worker left is for its next life.
    const containers = (await this.containers()).filter(({ worker }) => alive.has(worker));
    return readHistory({ redis: this.#observer(), jobs, workspaces: this.workspaces, containers });
  }

  /**
   * Reads what the run left and proves that everything that must always hold did. Polled: a job leaves its queue a moment
   * after its end is published, and a container goes a moment after its lease.
   */
  async provesSound(jobs: readonly HistoryJob[], rules?: HistoryRules): Promise<void> {
    // The first few tell what is wrong; ten thousand would only hide it.
    const breaches = async () => breachesOf(await this.history(jobs), rules).slice(0, 20);
    await expect.poll(breaches, { timeout: 20_000, interval: 250 }).toEqual([]);
  }

  /** Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const client of this.#clients) await client.close();
    const stuck = (await Promise.all(this.#workers.map((worker) => worker.stopped(stopWithinMs)))).flat();
    const killed = this.#workers.some(({ process: { signalCode } }) => signalCode === "SIGKILL");
    const left = await this.#driver().list();
    await this.#driver().reap(() => true);
    await rm(this.#directory, { recursive: true, force: true });
    // A worker that was killed cannot clean up; what it leaves is for its next life, or the reaper.
    if (!killed) expect(left, "containers left after the test").toEqual([]);
    expect(stuck, "workers that did not stop after SIGTERM").toEqual([]);
    const printed = this.#workers.filter(({ log }) => log.includes("[ioredis]")).map(({ id }) => id);
    expect(printed, "workers in whose log a library speaks").toEqual([]);
  }

  #observer(): Redis {
    this.#observing ??= this.redis.connect();
    return this.#observing;
  }

  #driver(host?: string): DockerDriver {
    return new DockerDriver({
      host,
      fleet: fleetId.parse(this.name),
      worker: workerId.parse("observer"),
      workspacesRoot: this.workspaces,
      engineHost: this.engineHost,
    });
  }
}

/** As a worker names its host by default. */
function thisHost(): string {
  const read = readConfig({});
  if ("problems" in read) throw new Error(read.problems.join("; "));
  return read.config.host;
}

export const test = withRedis.extend<{ fleet: TestFleet }>({
  fleet: async ({ redis, onTestFailed }, use) => {
    const fleet = new TestFleet(redis, await mkdtemp(join(tmpdir(), "berth-fleet-")));
    onTestFailed(() => console.log(fleet.lastWords()));
    try {
      await use(fleet);
    } finally {
      await fleet.close();
    }
  },
});
