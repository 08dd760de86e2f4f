import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Berth } from "@berth/client";
import { isSuccess, type JobResult } from "@berth/protocol";
import { connectRedis, type Redis } from "@berth/redis";
import type { BenchHost } from "./bench-host.ts";

const workerProgram = fileURLToPath(new URL("../../apps/worker/src/main.ts", import.meta.url));

/** Redis, workers and a client of one scenario's own, each in a process of its own as in a real fleet. */
export class BenchFleet implements AsyncDisposable {
  readonly url: string;
  readonly #host: BenchHost;
  readonly #directory: string;
  readonly #children: ChildProcess[] = [];
  readonly #clients: Berth[] = [];
  readonly #connections: Redis[] = [];

  private constructor(host: BenchHost, directory: string) {
    this.#host = host;
    this.#directory = directory;
    this.url = `unix://${join(directory, "redis.sock")}`;
  }

  static async open(host: BenchHost): Promise<BenchFleet> {
    const fleet = new BenchFleet(host, await mkdtemp(join(tmpdir(), "berth-bench-fleet-")));
    const where = ["--port", "0", "--unixsocket", join(fleet.#directory, "redis.sock")];
    const policy = ["--dir", fleet.#directory, "--appendonly", "yes", "--save", ""];
    const redis = spawn("redis-server", [...where, ...policy, "--maxmemory-policy", "noeviction"], {
      stdio: "ignore",
    });
    fleet.#children.push(redis);
    await fleet.connect().ping();
    return fleet;
  }

  async worker(id: string, settings: Readonly<Record<string, string>> = {}): Promise<ChildProcess> {
    const worker = spawn(process.execPath, ["--conditions=@berth/source", workerProgram], {
      env: {
        PATH: process.env.PATH ?? "",
        ...(process.env.DOCKER_HOST ? { DOCKER_HOST: process.env.DOCKER_HOST } : {}),
        REDIS_URL: this.url,
        BERTH_FLEET: this.#host.place.fleet,
        BERTH_WORKSPACES: this.#host.place.workspacesRoot,
        BERTH_ARTIFACTS: join(this.#directory, "artifacts"),
        BERTH_WORKER_ID: id,
        ...settings,
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#children.unshift(worker);
    await new Promise<void>((resolve, reject) => {
      worker.once("exit", (code) => reject(new Error(`${id} ended with ${code}`)));
      worker.stdout.on("data", (chunk: Buffer) => {
        if (chunk.includes("worker.started")) resolve();
      });
    });
    return worker;
  }

  client(): Berth {
    const client = new Berth({ redis: this.url });
    this.#clients.push(client);
    return client;
  }

  connect(role: "commands" | "blocking" = "commands"): Redis {
    const redis = connectRedis({ url: this.url, role });
    this.#connections.push(redis);
    return redis;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) await client.close();
    for (const connection of this.#connections) connection.disconnect();
    // Workers first, so that they release their leases while Redis still runs.
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      await gone;
    }
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** Throws if the measured call failed: a failed call is fast, and would make a wrong sample. */
export function wentWell<R extends Pick<JobResult, "outcome">>(result: R): R {
  if (!isSuccess(result.outcome))
    throw new Error(`the job did not succeed: ${JSON.stringify(result.outcome)}`);
  return result;
}
