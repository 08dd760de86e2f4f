import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { WarmPool, type WarmPoolOptions } from "../src/docker/warm/warm-pool.ts";
import type { WarmShape } from "../src/docker/warm/warm-shape.ts";

const isRoot = process.getuid?.() === 0;
const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

test.runIf(isRoot)("a warm pool that is woken for each sandbox leaves no timers behind", async () => {
  const failing = {
    workspaces: async () => ({ rootlessEngine: false }),
    mounter: { whyNot: () => Promise.reject(new Error("no mounter here")), stop: () => {} },
    onState: () => {},
  };
  const pool = new WarmPool(failing as unknown as WarmPoolOptions);
  pool.start();
  await turn();
  const before = timers();
  for (let sandbox = 0; sandbox < 50; sandbox++) {
    pool.take({ id: "any" } as WarmShape);
    await turn();
  }
  expect(timers() - before).toBeLessThan(5);
  await pool.stop();
});
