import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkRedis, connectRedis } from "@berth/redis";

export interface LocalFleetOptions {
  readonly workers: number;
  /** A Redis that is there; otherwise one of our own is started in `directory`. */
  readonly redisUrl: string | undefined;
  readonly directory: string;
  readonly fleet: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** What a child that was told to stop gets before it is killed. */
const stopMs = 40_000;

/** Redis and some workers on this machine, as processes of their own that end with this one. */
export class LocalFleet {
  readonly redisUrl: string;
  readonly #options: LocalFleetOptions;
  #redis: ChildProcess | undefined;
  readonly #workers: ChildProcess[] = [];

  constructor(options: LocalFleetOptions) {
    this.#options = options;
    this.redisUrl = options.redisUrl ?? `unix://${join(options.directory, "redis.sock")}`;
  }

  async start(): Promise<void> {
    if (this.#options.redisUrl === undefined) await this.#startRedis();
    const probe = connectRedis({ url: this.redisUrl, role: "commands" });
    await checkRedis(probe, this.redisUrl).finally(() => probe.disconnect());
    await Promise.all(
      Array.from({ length: this.#options.workers }, (_, index) => this.#startWorker(index + 1)),
    );
  }

  /** Workers drain first: what they hold is given back while Redis is still there. */
  async stop(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => ended(worker)));
    if (this.#redis) await ended(this.#redis);
  }

  async #startRedis(): Promise<void> {
    const { directory } = this.#options;
    await mkdir(directory, { recursive: true });
    const where = ["--port", "0", "--unixsocket", join(directory, "redis.sock"), "--dir", directory];
    const policy = ["--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction"];
    this.#redis = spawn("redis-server", [...where, ...policy], { stdio: "ignore" });
    await once(this.#redis, "spawn");
  }

  async #startWorker(number: number): Promise<void> {
    const worker = spawn(process.execPath, [...process.execArgv, workerProgram()], {
      env: {
        ...this.#options.environment,
        REDIS_URL: this.redisUrl,
        BERTH_FLEET: this.#options.fleet,
        BERTH_WORKER_ID: `worker-${number}`,
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#workers.push(worker);
    await new Promise<void>((resolve, reject) => {
      worker.once("error", reject);
      worker.once("exit", (code) => reject(new Error(`worker-${number} ended with exit code ${code}`)));
      worker.stdout.on("data", (chunk: Buffer) => {
        if (chunk.includes("worker.started")) resolve();
      });
    });
  }
}

/** Beside this package, as sources or as built. */
function workerProgram(): string {
  const fromSource = import.meta.url.endsWith(".ts");
  return fileURLToPath(
    new URL(fromSource ? "../../worker/src/main.ts" : "../../worker/dist/main.js", import.meta.url),
  );
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  const timer = setTimeout(() => child.kill("SIGKILL"), stopMs);
  child.kill("SIGTERM");
  await exit;
  clearTimeout(timer);
}
