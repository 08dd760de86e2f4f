import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Epoch,
  epoch,
  fleetId,
  type SandboxKey,
  type SandboxProfileInput,
  sandboxKey,
  sandboxProfile,
  workerId,
} from "@berth/protocol";
import { DockerDriver, type DockerDriverOptions, type Sandbox } from "@berth/sandbox";
import { test as base, expect } from "vitest";

export interface OpenOptions {
  readonly key?: string;
  readonly epoch?: number;
  readonly leaseMs?: number;
  readonly profile?: SandboxProfileInput;
}

let made = 0;

/**
 * One test's own fleet on the real engine: names, workspaces and containers that no other test has. What a test leaves
 * running makes it fail, and is removed all the same.
 */
export class TestHost {
  readonly fleet = fleetId.parse(`test-${process.pid}-${Date.now().toString(36)}-${made++}`);
  readonly workspacesRoot: string;
  readonly #open = new Set<Sandbox>();

  constructor(workspacesRoot: string) {
    this.workspacesRoot = workspacesRoot;
  }

  driver(options: Partial<DockerDriverOptions> = {}): DockerDriver {
    return new DockerDriver({
      fleet: this.fleet,
      worker: workerId.parse("worker-1"),
      workspacesRoot: this.workspacesRoot,
      engineHost: process.env.DOCKER_HOST,
      ...options,
    });
  }

  /** Starts a sandbox. The fixture stops it when the test ends. */
  async sandbox(options: OpenOptions = {}, driver: DockerDriver = this.driver()): Promise<Sandbox> {
    const sandbox = await driver.start(startRequest(options));
    this.#open.add(sandbox);
    return sandbox;
  }

  async close(): Promise<void> {
    for (const sandbox of this.#open) await sandbox.stop();
    const left = await this.driver().list();
    await this.driver().reap(() => true);
    await rm(this.workspacesRoot, { recursive: true, force: true });
    expect(left, "containers left after the test").toEqual([]);
  }
}

export function startRequest(options: OpenOptions = {}): {
  key: SandboxKey;
  epoch: Epoch;
  profile: ReturnType<typeof sandboxProfile.parse>;
  leaseMs: number;
} {
  return {
    key: sandboxKey.parse(options.key ?? "acme"),
    epoch: epoch.parse(options.epoch ?? 1),
    profile: sandboxProfile.parse(options.profile ?? {}),
    leaseMs: options.leaseMs ?? 10_000,
  };
}

export const test = base.extend<{ host: TestHost }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  host: async ({}, use) => {
    const host = new TestHost(await mkdtemp(join(tmpdir(), "berth-test-")));
    try {
      await use(host);
    } finally {
      await host.close();
    }
  },
});
