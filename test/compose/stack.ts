import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Berth } from "@berth/client";
import { fleetId, workerId } from "@berth/protocol";
import { DockerDriver, type SandboxRecord } from "@berth/sandbox";
import Docker from "dockerode";
import { expect } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);
const { DOCKER_HOST = "unix:///var/run/docker.sock" } = process.env;
const enginePath = DOCKER_HOST.replace("unix://", "");

/** Compose v2, or docker-compose 1.29; undefined when the machine has neither. */
export const composeProgram: readonly string[] | undefined = [["docker", "compose"], ["docker-compose"]].find(
  ([program = "", ...args]) => spawnSync(program, [...args, "version"]).status === 0,
);

/** Why the stack cannot be brought up here; undefined when it can. */
export function whyNot(): string | undefined {
  if (!composeProgram) return "neither docker compose nor docker-compose is installed";
  if (!DOCKER_HOST.startsWith("unix://")) return "the engine is on another machine, where this folder is not";
  if (spawnSync("redis-server", ["--version"]).status !== 0)
    return "redis-server, which Redis' image is made of here, is not installed";
  return undefined;
}

export type Overlay = "offline" | "redis-port" | "engine-proxy" | "warm-pool";

/** The compose file under a name of the test's own: no other run has its containers, volumes, ports or workspaces. */
export class ComposeStack {
  readonly project = `berthtest${process.pid}`;
  readonly fleet = fleetId.parse(`test-${process.pid}-compose`);
  readonly workspaces: string;
  readonly docker = new Docker({ socketPath: enginePath });
  readonly #clients: Berth[] = [];

  private constructor(workspaces: string) {
    this.workspaces = workspaces;
  }

  static async make(): Promise<ComposeStack> {
    return new ComposeStack(await mkdtemp(join(tmpdir(), "berth-compose-")));
  }

  /** Builds bases and images. They stay after the test as the next run's cache. */
  async build(): Promise<void> {
    await run(process.execPath, [join(root, "infra/compose/base-images.mjs")], { cwd: root });
    await this.compose(["offline"], "build", "worker", "gateway");
  }

  /** Runs compose with the file and these overlays, and returns what it printed. */
  async compose(overlays: readonly Overlay[], ...args: string[]): Promise<string> {
    const [program = "", ...first] = composeProgram ?? [];
    const files = ["docker-compose.yml", ...overlays.map((name) => `infra/compose/${name}.yml`)];
    const options = ["-p", this.project, ...files.flatMap((file) => ["-f", join(root, file)])];
    const { stdout } = await run(program, [...first, ...options, ...args], {
      cwd: root,
      env: { ...process.env, ...this.#settings() },
      maxBuffer: 64 * 1024 * 1024,
    }).catch((error: Error & { stdout?: string }) => {
      throw new Error(`${error.message}\n${error.stdout?.slice(-4_000) ?? ""}`);
    });
    return stdout.trim();
  }

  /** The address of a service's port on this machine. */
  port(overlays: readonly Overlay[], service: string, port: number): Promise<string> {
    return this.compose(overlays, "port", service, String(port));
  }

  /** A client of the fleet's Redis, with the generated password. */
  async client(overlays: readonly Overlay[]): Promise<Berth> {
    const address = await this.port(overlays, "redis", 6379);
    const password = await this.compose(overlays, "exec", "-T", "gateway", "redis-password");
    const client = new Berth({ redis: `redis://:${password}@${address}` });
    this.#clients.push(client);
    return client;
  }

  /** The project's containers of a service, by number. */
  async containers(service: string): Promise<Docker.ContainerInfo[]> {
    const label = [`com.docker.compose.project=${this.project}`, `com.docker.compose.service=${service}`];
    const found = await this.docker.listContainers({ all: true, filters: { label } });
    const number = ({ Labels }: Docker.ContainerInfo) =>
      Number(Labels["com.docker.compose.container-number"]);
    return found.sort((a, b) => number(a) - number(b));
  }

  /** The fleet's sandboxes, in every state. */
  sandboxes(): Promise<SandboxRecord[]> {
    return this.#driver().list();
  }

  /** Everything that the project and the fleet's sandboxes have on the engine. */
  async left(): Promise<string[]> {
    const filters = { label: [`com.docker.compose.project=${this.project}`] };
    const containers = await this.docker.listContainers({ all: true, filters });
    const networks = await this.docker.listNetworks({ filters });
    const { Volumes: volumes } = await this.docker.listVolumes({ filters: JSON.stringify(filters) as never });
    return [
      ...containers.map(({ Names }) => `container ${Names[0]}`),
      ...networks.map(({ Name }) => `network ${Name}`),
      ...(volumes ?? []).map(({ Name }) => `volume ${Name}`),
      ...(await this.sandboxes()).map(({ key, state }) => `sandbox ${key} (${state})`),
    ];
  }

  async down(): Promise<void> {
    for (const client of this.#clients) await client.close();
    // The engine may take a moment to free the network of removed containers.
    await expect.poll(() => this.#takeDown(), { timeout: 30_000, interval: 500 }).toBe("down");
  }

  async #takeDown(): Promise<"down" | "network in use"> {
    try {
      await this.compose(["offline", "redis-port", "engine-proxy"], "down", "--volumes", "--remove-orphans");
      return "down";
    } catch (error) {
      if (!String(error).includes("has active endpoints")) throw error;
      return "network in use";
    }
  }

  /** Removes the stack in any state. */
  async clear(): Promise<void> {
    await this.down().catch(() => {});
    await this.#driver().reap(() => true);
    await rm(this.workspaces, { recursive: true, force: true });
  }

  #settings(): Record<string, string> {
    return {
      BERTH_WORKER_APP: "berth-worker:test",
      BERTH_GATEWAY_APP: "berth-gateway:test",
      BERTH_ENGINE_SOCKET: enginePath,
      BERTH_WORKSPACES: this.workspaces,
      BERTH_FLEET: this.fleet,
      BERTH_GATEWAY_PORT: "0",
      BERTH_REDIS_PORT: "0",
      BERTH_LEASE_MS: "5000",
      BERTH_SWEEP_MS: "500",
    };
  }

  #driver(): DockerDriver {
    return new DockerDriver({
      fleet: this.fleet,
      worker: workerId.parse("observer"),
      workspacesRoot: this.workspaces,
      engineHost: DOCKER_HOST,
    });
  }
}
