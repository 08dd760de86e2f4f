import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Fault } from "@berth/protocol";
import { checkRedis, connectRedis, type Redis } from "@berth/redis";
import type { Config } from "../config.ts";
import { type ChildOptions, LocalChild } from "./child.ts";
import type { Leftovers } from "./guard.ts";
import { secretsEnvironment } from "./secrets-key.ts";

export interface LocalFleetOptions {
  readonly workers: number;
  /** An existing Redis; absent: start one in `directory`. */
  readonly redisUrl: string | undefined;
  /** Absolute path for logs and the fleet's data. */
  readonly directory: string;
  /** Remove the directory with the fleet, even when this process is killed; otherwise the caller removes it. */
  readonly temporary?: boolean;
  /** Labels the containers. Two fleets on one engine need different names: a worker removes containers of its predecessor. */
  readonly fleet: string;
  /** Worker ids are this, `-` and a number. */
  readonly workerPrefix: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly config: Config;
  readonly onEnd?: ChildOptions["onEnd"];
}

/**
 * Runs Redis, workers and a gateway on this machine as separate processes. They end with this process, however it ends:
 *
 *   stop()              workers and gateway are stopped, then Redis, then the guard
 *   this process dies   workers and gateway notice the end of their IPC channel and stop; the guard then stops Redis
 */
export class LocalFleet {
  readonly redisUrl: string;
  readonly #options: LocalFleetOptions;
  readonly #children: LocalChild[] = [];
  #guard: ChildProcess | undefined;
  #gatewayUrl = "";
  #stopped = false;
  #secrets: Readonly<Record<string, string>> = {};
  #probe: Redis | undefined;

  constructor(options: LocalFleetOptions) {
    this.#options = options;
    this.redisUrl = options.redisUrl ?? `unix://${join(options.directory, "redis.sock")}`;
  }

  /** The gateway's address, once started. */
  get gatewayUrl(): string {
    return this.#gatewayUrl;
  }

  async start(): Promise<void> {
    await mkdir(this.#options.directory, { recursive: true });
    this.#secrets = await secretsEnvironment(this.#options);
    if (this.#options.redisUrl === undefined) await this.#startRedis();
    else this.#startGuard({});
    this.#probe = connectRedis({ url: this.redisUrl, role: "commands" });
    await checkRedis(this.#probe, this.redisUrl).finally(() => this.#probe?.disconnect());
    const workers = Array.from({ length: this.#options.workers }, (_, index) => this.#startWorker(index + 1));
    const begun = await Promise.allSettled([this.#startGateway(), ...workers]);
    for (const one of begun) if (one.status === "rejected") throw one.reason;
  }

  /** In reverse order: workers release their leases while Redis still runs. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#probe?.disconnect();
    const [redis, ...rest] =
      this.#options.redisUrl === undefined ? this.#children : [undefined, ...this.#children];
    await Promise.all(rest.map((child) => child?.stop()));
    await redis?.stop();
    // Last, since it is needed until here. A guard left behind would act on the next fleet in the same directory.
    if (this.#guard?.kill("SIGKILL")) await once(this.#guard, "exit");
  }

  async #startRedis(): Promise<void> {
    const { directory } = this.#options;
    const where = ["--port", "0", "--unixsocket", join(directory, "redis.sock"), "--dir", directory];
    const policy = ["--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction"];
    const starting = this.#start({
      name: "redis",
      program: "redis-server",
      args: [...where, ...policy],
      env: this.#environment(),
    });
    // Before the first await: a kill from here on leaves no Redis behind.
    const pid = this.#children[0]?.pid;
    this.#startGuard(pid === undefined ? {} : { redis: { pid, socket: join(directory, "redis.sock") } });
    await starting;
  }

  #startGuard(leftovers: Leftovers): void {
    const { directory, temporary } = this.#options;
    const whole: Leftovers = temporary ? { ...leftovers, directory } : leftovers;
    if (this.#stopped || Object.keys(whole).length === 0) return;
    const args = [...process.execArgv, besideUs("guard"), JSON.stringify(whole)];
    this.#guard = spawn(process.execPath, args, {
      env: { PATH: this.#options.config.path },
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    // The fleet works without a guard. Only a kill of this process would then leave Redis running.
    this.#guard.on("error", () => {});
    this.#guard.stdin?.on("error", () => {});
  }

  async #startWorker(number: number): Promise<void> {
    const { fleet, workerPrefix } = this.#options;
    const env = { ...this.#environment(), BERTH_FLEET: fleet, BERTH_WORKER_ID: `${workerPrefix}-${number}` };
    await this.#startOwn(`worker-${number}`, "worker", env, "worker.started");
  }

  async #startGateway(): Promise<void> {
    const env = { ...this.#environment(), BERTH_GATEWAY_PORT: String(this.#options.port) };
    const { readyLine } = await this.#startOwn("gateway", "gateway", env, "gateway.started");
    this.#gatewayUrl = JSON.parse(readyLine).address;
  }

  #startOwn(name: string, app: string, env: Record<string, string>, readyWord: string): Promise<LocalChild> {
    const args = [...process.execArgv, programOf(app)];
    const holds = this.#guard?.stdin ?? undefined;
    return this.#start({ name, program: process.execPath, args, env, readyWord, endsWithUs: true, holds });
  }

  async #start(options: Omit<ChildOptions, "logFile" | "onEnd">): Promise<LocalChild> {
    const { directory, onEnd } = this.#options;
    const logFile = join(directory, `${options.name}.log`);
    if (this.#stopped) throw new Fault("aborted", { operation: `starting ${options.name}` });
    const child = new LocalChild({ ...options, logFile, ...(onEnd ? { onEnd } : {}) });
    this.#children.push(child);
    await child.ready();
    return child;
  }

  /** Passes only named variables, so that no key or address leaks from the caller's environment into a child. */
  #environment(): Record<string, string> {
    const { directory, config } = this.#options;
    const given = Object.entries({
      DOCKER_HOST: config.engineHost,
      BERTH_RUNTIME: config.runtime,
      BERTH_APPROVAL_WEBHOOK: config.approvalWebhook,
      OTEL_EXPORTER_OTLP_ENDPOINT: config.tracesEndpoint,
    });
    return {
      PATH: config.path,
      REDIS_URL: this.redisUrl,
      BERTH_IMAGE: config.image,
      BERTH_WORKSPACES: join(directory, "workspaces"),
      BERTH_ARTIFACTS: join(directory, "artifacts"),
      ...this.#secrets,
      ...Object.fromEntries(given.filter((pair): pair is [string, string] => pair[1] !== undefined)),
    };
  }
}

const fromSource = import.meta.url.endsWith(".ts");

/** Next to this package, as source or as built. */
function programOf(app: string): string {
  const main = fromSource ? "src/main.ts" : "dist/main.js";
  return fileURLToPath(new URL(`../../../${app}/${main}`, import.meta.url));
}

function besideUs(name: string): string {
  return fileURLToPath(new URL(`./${name}.${fromSource ? "ts" : "js"}`, import.meta.url));
}
