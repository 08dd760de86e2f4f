import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Berth } from "@berth/client";
import { fleetId, workerId } from "@berth/protocol";
import { DockerDriver, type SandboxRecord } from "@berth/sandbox";
import { expect } from "vitest";
import { type TestRedis, test as withRedis } from "./redis.ts";

const workerProgram = fileURLToPath(new URL("../../apps/worker/src/main.ts", import.meta.url));
let made = 0;

/** A worker process of the test's own. */
export class TestWorker {
  readonly id: string;
  readonly process: ChildProcess;
  #log = "";

  constructor(id: string, env: Record<string, string>) {
    this.id = id;
    this.process = spawn(process.execPath, ["--conditions=@berth/source", workerProgram], {
      env: { PATH: process.env.PATH ?? "", ...env, BERTH_WORKER_ID: id },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.#log += chunk;
      });
    }
  }

  get log(): string {
    return this.#log;
  }

  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** Its exit code, or the signal that ended it. */
  async ended(): Promise<number | string> {
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, "exit");
    return this.process.exitCode ?? this.process.signalCode ?? "gone";
  }
}

/** Workers, clients and a Redis of one test's own. What is left when the test ends makes it fail. */
export class TestFleet {
  readonly redis: TestRedis;
  readonly name = `test-${process.pid}-${Date.now().toString(36)}-f${made++}`;
  readonly #directory: string;
  readonly #workers: TestWorker[] = [];
  readonly #clients: Berth[] = [];

  constructor(redis: TestRedis, directory: string) {
    this.redis = redis;
    this.#directory = directory;
  }

  async worker(id: string, env: Record<string, string> = {}): Promise<TestWorker> {
    const worker = new TestWorker(id, {
      REDIS_URL: this.redis.url,
      ...(process.env.DOCKER_HOST ? { DOCKER_HOST: process.env.DOCKER_HOST } : {}),
      BERTH_FLEET: this.name,
      BERTH_WORKSPACES: join(this.#directory, "workspaces"),
      BERTH_LEASE_MS: "6000",
      BERTH_SWEEP_MS: "500",
      ...env,
    });
    this.#workers.push(worker);
    await expect.poll(() => worker.log, { timeout: 20_000 }).toContain("worker.started");
    return worker;
  }

  client(): Berth {
    const client = new Berth({ redis: this.redis.url });
    this.#clients.push(client);
    return client;
  }

  containers(): Promise<SandboxRecord[]> {
    return this.#driver().list();
  }

  async close(): Promise<void> {
    for (const client of this.#clients) await client.close();
    const ends = this.#workers.map(async (worker) => {
      worker.signal("SIGCONT");
      worker.signal("SIGTERM");
      return worker.ended();
    });
    await Promise.all(ends);
    const killed = this.#workers.some(({ process: { signalCode } }) => signalCode === "SIGKILL");
    const left = await this.containers();
    await this.#driver().reap(() => true);
    await rm(this.#directory, { recursive: true, force: true });
    // A worker that was killed cannot clean up; what it leaves is for its next life, or the reaper.
    if (!killed) expect(left, "containers left after the test").toEqual([]);
  }

  #driver(): DockerDriver {
    return new DockerDriver({
      fleet: fleetId.parse(this.name),
      worker: workerId.parse("observer"),
      workspacesRoot: join(this.#directory, "workspaces"),
      engineHost: process.env.DOCKER_HOST,
    });
  }
}

export const test = withRedis.extend<{ fleet: TestFleet }>({
  fleet: async ({ redis }, use) => {
    const fleet = new TestFleet(redis, await mkdtemp(join(tmpdir(), "berth-fleet-")));
    try {
      await use(fleet);
    } finally {
      await fleet.close();
    }
  },
});
