import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type SandboxProfileInput, sandboxProfile, workerId } from "@berth/protocol";
import type { DockerDriver, DockerDriverOptions, WarmSizes } from "@berth/sandbox";
import { expect } from "vitest";
import { test as base, type TestHost } from "./host.ts";

/** Drivers with a pool of warm containers, which is emptied when the test ends. */
export class WarmHost {
  readonly states: string[] = [];
  readonly #host: TestHost;
  readonly #drivers: DockerDriver[] = [];

  constructor(host: TestHost) {
    this.#host = host;
  }

  async driver(
    sizes: WarmSizes = { count: 1, most: 1 },
    profile: SandboxProfileInput = {},
    worker = "worker-1",
    options: Partial<DockerDriverOptions> = {},
  ): Promise<DockerDriver> {
    const driver = this.#host.driver({
      ...options,
      worker: workerId.parse(worker),
      warm: {
        sizes,
        profile: () => sandboxProfile.parse(profile),
        onState: (state, why) => this.states.push(`${state} ${why}`.trim()),
      },
    });
    this.#drivers.push(driver);
    driver.startWarming();
    await this.ready(driver, sizes.count);
    return driver;
  }

  async ready(driver: DockerDriver, count = 1): Promise<void> {
    await expect.poll(() => driver.warm, { timeout: 30_000 }).toMatchObject({ ready: count });
  }

  async close(): Promise<void> {
    for (const driver of this.#drivers) await driver.stopWarming();
  }
}

export const test = base.extend<{ warm: WarmHost }>({
  warm: async ({ host }, use) => {
    const warm = new WarmHost(host);
    await use(warm);
    await warm.close();
  },
});

/** The process id of this test's own helper. */
export function mounterOf(root: string): number {
  const words = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    } catch {
      return [];
    }
  };
  const found = readdirSync("/proc").filter((pid) => {
    const [, option, place] = /^\d+$/.test(pid) ? words(pid) : [];
    return option === "--mounter" && place === root;
  });
  return Number(found[0]);
}

/** A container is noted as a sandbox's: from then on its workspace is being mounted, or was. */
export function isHeld(root: string): boolean {
  const notes = join(root, ".parked");
  return (
    existsSync(notes) && readdirSync(notes, { recursive: true }).some((name) => `${name}`.includes(".held."))
  );
}
