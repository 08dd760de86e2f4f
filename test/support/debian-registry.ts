import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type Docker from "dockerode";
import { expect } from "vitest";

const program = ["/usr/bin/docker-registry", "/usr/local/bin/docker-registry"].find((path) =>
  existsSync(path),
);

/** Why no registry can be started here; undefined when one can. */
export const noRegistry: string | undefined =
  program === undefined ? "docker-registry is not installed; npm run setup installs it on Debian" : undefined;

/** Debian's docker-registry on a port of its own, on loopback only, where engines ask for no certificate. */
export class DebianRegistry implements AsyncDisposable {
  readonly address: string;
  readonly #process: ChildProcess;
  readonly #home: string;

  private constructor(address: string, process: ChildProcess, home: string) {
    this.address = address;
    this.#process = process;
    this.#home = home;
  }

  static async start(): Promise<DebianRegistry> {
    const home = await mkdtemp(join(tmpdir(), "berth-registry-"));
    const address = `127.0.0.1:${await freePort()}`;
    const config = join(home, "config.yml");
    await writeFile(
      config,
      `version: 0.1\nlog: { level: error }\nstorage: { filesystem: { rootdirectory: ${home}/data } }\nhttp: { addr: "${address}" }\n`,
    );
    const started = spawn(program ?? "", ["serve", config], { stdio: "ignore", env: {} });
    const answers = () =>
      fetch(`http://${address}/v2/`).then(
        ({ ok }) => ok,
        () => false,
      );
    await expect.poll(answers, { timeout: 30_000 }).toBe(true);
    return new DebianRegistry(address, started, home);
  }

  /** Pushes an image of the engine under a name of this registry, and removes that name from the engine. */
  async publish(docker: Docker, image: string, name: string): Promise<string> {
    const [repo = "", tag = ""] = name.split(":");
    const full = `${this.address}/${repo}`;
    await docker.getImage(image).tag({ repo: full, tag });
    const pushing = await docker.getImage(`${full}:${tag}`).push({ authconfig: {} });
    await new Promise<void>((resolve, reject) =>
      docker.modem.followProgress(pushing, (error) => (error ? reject(error) : resolve())),
    );
    await this.forget(docker, `${full}:${tag}`);
    return `${full}:${tag}`;
  }

  async forget(docker: Docker, image: string): Promise<void> {
    await docker
      .getImage(image)
      .remove()
      .catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#process, "exit");
    this.#process.kill();
    await gone;
    await rm(this.#home, { recursive: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
