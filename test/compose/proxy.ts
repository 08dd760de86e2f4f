import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, copyFile, mkdir } from "node:fs/promises";
import http from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { initBinaryPath } from "@berth/init";
import { sandboxProfile } from "@berth/protocol";
import type { DockerDriver } from "@berth/sandbox";
import Docker from "dockerode";
import { expect } from "vitest";
import { containerSpec } from "../../packages/sandbox/src/docker/container-spec.ts";
import { test as base, type TestHost } from "../support/host.ts";

const program = fileURLToPath(new URL("../../apps/engine-proxy/src/main.ts", import.meta.url));
const { DOCKER_HOST = "unix:///var/run/docker.sock" } = process.env;
export const enginePath = DOCKER_HOST.replace("unix://", "");
export const image = "berth-busybox:test";
export const missingImage = "127.0.0.1:1/nothing:here";
const user = "2000000:2000000";
const linkName = `.link/${"0".repeat(32)}`;
const initName = ".init/0123456789abcdef";

/** The proxy as a process, in front of the machine's engine. */
export class TestProxy {
  readonly socket: string;
  readonly initPath: string;
  readonly docker: Docker;
  readonly #workspace: string;
  readonly #process: ChildProcess;
  log = "";

  constructor(host: TestHost) {
    this.socket = join(host.workspacesRoot, ".engine.sock");
    this.initPath = join(host.workspacesRoot, initName);
    this.#workspace = join(host.workspacesRoot, "acme");
    this.docker = new Docker({ socketPath: this.socket });
    this.#process = spawn(process.execPath, ["--conditions=@berth/source", program], {
      env: {
        BERTH_FLEET: host.fleet,
        BERTH_WORKSPACES: host.workspacesRoot,
        BERTH_PROXY_ENGINE: enginePath,
        BERTH_PROXY_IMAGES: `${image},${missingImage}`,
        BERTH_PROXY_SOCKET: this.socket,
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#process.stdout?.on("data", (chunk: Buffer) => {
      this.log += chunk;
    });
  }

  /** A driver that uses the proxy's socket. */
  driver(host: TestHost): DockerDriver {
    return host.driver({ engineHost: `unix://${this.socket}`, initPath: this.initPath });
  }

  /** The status of the answer to `METHOD /path`. */
  status(line: string): Promise<number | undefined> {
    const [method, path] = line.split(" ");
    return new Promise((resolve, reject) => {
      const request = http.request({ socketPath: this.socket, method, path, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      request.on("error", reject).end();
    });
  }

  /** Sends bytes and returns everything that the proxy answers until it closes the connection. */
  async raw(bytes: string): Promise<string> {
    const socket = connect(this.socket);
    socket.write(bytes);
    let answer = "";
    for await (const chunk of socket) answer += chunk;
    return answer;
  }

  async start(): Promise<void> {
    await mkdir(join(this.initPath, ".."));
    await copyFile(initBinaryPath, this.initPath);
    await chmod(this.initPath, 0o755);
    await mkdir(this.#workspace);
    await mkdir(join(this.initPath, "../..", linkName), { recursive: true });
    await chown(this.#workspace, 2_000_000, 2_000_000);
    await expect.poll(() => this.docker.ping().then(String, String), { timeout: 10_000 }).toBe("OK");
  }

  async stop(): Promise<void> {
    const gone = once(this.#process, "exit");
    this.#process.kill();
    await gone;
  }
}

export const test = base.extend<{ proxy: TestProxy }>({
  proxy: async ({ host }, use) => {
    const proxy = new TestProxy(host);
    try {
      await proxy.start();
      await use(proxy);
    } finally {
      await proxy.stop();
    }
  },
});

/** The description of a sandbox's container, as the driver sends it, with changes. */
export function container(
  host: TestHost,
  change: (spec: Spec) => void = () => {},
): Docker.ContainerCreateOptions {
  const made = containerSpec({
    profile: sandboxProfile.parse({ image }),
    workspace: { path: join(host.workspacesRoot, "acme"), user, ownUid: true, sharesUid: false },
    initPath: join(host.workspacesRoot, initName),
    linkDirectory: join(host.workspacesRoot, linkName),
    etcFiles: [],
    hostMounts: [],
    seccomp: undefined,
    disk: undefined,
    shared: { directories: [], gid: undefined },
    imageVolumes: [],
  });
  const labels = { "berth.fleet": host.fleet };
  const spec = structuredClone({
    ...made,
    name: `berth-${host.fleet}-probe`,
    Labels: labels,
  }) as unknown as Spec;
  change(spec);
  return spec as Docker.ContainerCreateOptions;
}

export interface Spec {
  [field: string]: unknown;
  Labels: Record<string, string>;
  HostConfig: Record<string, unknown> & { Mounts: Mount[] };
}

interface Mount {
  readonly Type: string;
  readonly Source: string;
  readonly Target: string;
  readonly ReadOnly?: boolean;
}

/** Replaces the mount with the same target, or adds one. */
export function mounting(mount: Mount): (spec: Spec) => void {
  return ({ HostConfig }) => {
    HostConfig.Mounts = [...HostConfig.Mounts.filter(({ Target }) => Target !== mount.Target), mount];
  };
}

export const bind = (source: string, target = "/workspace", more = {}) => ({
  Type: "bind",
  Source: source,
  Target: target,
  ...more,
});
