import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Docker from "dockerode";
import { expect } from "vitest";
import { test as withFleet } from "./fleet.ts";

/** Whether this machine can start an engine: it needs root and the program. */
export const canRunEngine =
  process.getuid?.() === 0 &&
  ["/usr/sbin/dockerd", "/usr/bin/dockerd", "/usr/local/bin/dockerd"].some((path) => existsSync(path));

/** A container engine of one test's own, which may be killed. The machine's own is never touched. */
export class PrivateEngine {
  readonly #home: string;
  readonly docker: Docker;
  #process: ChildProcess | undefined;
  #log = "";

  /** `home` is short: a unix socket's path has 107 bytes at most, and containerd adds its own to it. */
  constructor(home: string) {
    this.#home = home;
    this.docker = new Docker({ socketPath: join(home, "e.sock") });
  }

  get address(): string {
    return `unix://${join(this.#home, "e.sock")}`;
  }

  async start(): Promise<void> {
    const home = this.#home;
    const places = ["--data-root", join(home, "data"), "--exec-root", join(home, "exec")];
    // Its own data and no networks, whose rules all engines share. Where the system runs a containerd, apart by namespace.
    const apart = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--storage-driver=vfs"];
    const names = [
      "--containerd-namespace=berth-chaos",
      "--containerd-plugins-namespace=berth-chaos-plugins",
    ];
    const options = ["--host", this.address, "--pidfile", join(home, "pid"), ...places, ...apart, ...names];
    const path = `${process.env.PATH ?? ""}:/usr/local/sbin:/usr/sbin:/sbin`;
    // In a network namespace of its own: an engine that is configured without a bridge removes docker0, even another engine's.
    const started = spawn("unshare", ["--net", "dockerd", ...options], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: path, HOME: process.env.HOME ?? "/root" },
    });
    this.#process = started;
    for (const stream of [started.stdout, started.stderr])
      stream?.on("data", (chunk: Buffer) => {
        this.#log = `${this.#log}${chunk}`.slice(-20_000);
      });
    // An engine may never answer a call that comes before it is ready.
    const asked = new Docker({ socketPath: join(home, "e.sock"), timeout: 500 });
    const answers = () =>
      asked.ping().then(
        () => "answers",
        () => `silent; ${this.#log}`,
      );
    await expect.poll(answers, { timeout: 30_000 }).toBe("answers");
  }

  /** Copies an image from another engine. */
  async load(image: string, from: Docker): Promise<void> {
    const loading = await this.docker.loadImage(await from.getImage(image).get());
    for await (const _ of loading) await Promise.resolve();
  }

  /** Kills the engine, as in a crash. The containers' shims keep running. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
    await rm(join(this.#home, "pid"), { force: true });
    const containerd = join(this.#home, "exec/containerd/containerd");
    // The kernel ends containerd with its engine. The next engine would adopt one that is still running.
    await expect.poll(() => isRunning(`${containerd}.pid`), { timeout: 10_000 }).toBe(false);
    for (const left of [`${containerd}.pid`, `${containerd}.sock`]) await rm(left, { force: true });
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
    const data = join(this.#home, "data");
    // An engine that was killed leaves its data folder mounted onto itself.
    const unmounted = () =>
      !readFileSync("/proc/self/mounts", "utf8").includes(` ${data} `) ||
      spawnSync("umount", [data]).status !== 0;
    await expect.poll(unmounted, { timeout: 10_000 }).toBe(true);
    await rm(this.#home, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const ending = this.#process;
    this.#process = undefined;
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return;
    const gone = once(ending, "exit");
    ending.kill(signal);
    await gone;
  }
}

function isRunning(pidFile: string): boolean {
  if (!existsSync(pidFile)) return false;
  const pid = readFileSync(pidFile, "utf8").trim();
  return existsSync(`/proc/${pid}/cmdline`) && readFileSync(`/proc/${pid}/cmdline`, "utf8") !== "";
}

/** A fleet whose workers use an engine of the test's own, with the small image in it. */
export const test = withFleet.extend<{ engine: PrivateEngine }>({
  engine: async ({ fleet }, use) => {
    const engine = new PrivateEngine(await mkdtemp(join(tmpdir(), "be-")));
    try {
      await engine.start();
      await engine.load("berth-busybox:test", machineEngine());
      fleet.engineHost = engine.address;
      await use(engine);
    } finally {
      await fleet.close();
      await engine.stop();
    }
  },
});

/** The engine that the tests themselves use. */
export function machineEngine(): Docker {
  const host = process.env.DOCKER_HOST;
  return new Docker(host?.startsWith("unix://") ? { socketPath: host.slice("unix://".length) } : {});
}
