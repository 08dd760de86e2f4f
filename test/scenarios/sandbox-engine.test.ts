import { createServer, type Server, type Socket } from "node:net";
import { isFault } from "@berth/protocol";
import { describe, expect } from "vitest";
import { startRequest, test } from "../support/host.ts";

/** An engine that takes connections and never says a word. */
async function silentEngine(): Promise<{ address: string; calls: () => number; close: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("not a TCP address");
  return {
    address: `tcp://127.0.0.1:${bound.port}`,
    calls: () => sockets.size,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe("engine in trouble", () => {
  test("a missing engine is a fault with its address", async ({ host }) => {
    const driver = host.driver({ engineHost: "unix:///nowhere/engine.sock" });
    await expect(driver.check()).rejects.toSatisfy(
      (error) =>
        isFault(error, "engine-unreachable") && error.message.includes("unix:///nowhere/engine.sock"),
    );
    await expect(driver.start(startRequest())).rejects.toSatisfy((error) =>
      isFault(error, "engine-unreachable"),
    );
  });

  test("an engine that does not answer makes calls fail by their deadline, then at once", async ({
    host,
  }) => {
    const engine = await silentEngine();
    try {
      const driver = host.driver({ engineHost: engine.address, engineDeadlineMs: 200 });
      for (let count = 0; count < 5; count++) {
        await expect(driver.check()).rejects.toSatisfy((error) => isFault(error, "engine-timeout"));
      }
      const asked = engine.calls();
      expect(asked).toBeGreaterThanOrEqual(5);
      await expect(driver.start(startRequest())).rejects.toSatisfy((error) =>
        isFault(error, "engine-wedged"),
      );
      expect(engine.calls(), "the engine is not asked any more").toBe(asked);
    } finally {
      await engine.close();
    }
  });

  test("a caller that gives up does not wait for an engine that does not answer", async ({ host }) => {
    const engine = await silentEngine();
    try {
      const driver = host.driver({ engineHost: engine.address });
      await expect(driver.check({ signal: AbortSignal.timeout(50) })).rejects.toSatisfy((error) =>
        isFault(error, "aborted"),
      );
    } finally {
      await engine.close();
    }
  });

  test("a start that is given up leaves no container on a slow engine", async ({ host }) => {
    const driver = host.driver();
    const controller = new AbortController();
    const starting = driver.start(startRequest(), { signal: controller.signal });
    await expect.poll(async () => (await driver.list()).length).toBe(1);
    controller.abort();
    await starting.then(
      (sandbox) => sandbox.stop(),
      (error) => expect(isFault(error, "aborted")).toBe(true),
    );
    expect(await driver.list()).toEqual([]);
  });

  test("an engine reports its name, version and runtimes", async ({ host }) => {
    const report = await host.driver().check();
    expect(report.version).toMatch(/^\d+\./);
    expect(report.runtimes).toContain("runc");
  });
});
