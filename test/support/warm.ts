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
