import { expect } from "vitest";
import { busybox, type TestWorker, test } from "../support/fleet.ts";

function events(worker: TestWorker, event: string): Record<string, unknown>[] {
  const lines = worker.log.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line)).filter((line) => line.event === event);
}

async function event(worker: TestWorker, name: string): Promise<Record<string, unknown>> {
  await expect.poll(() => events(worker, name).length, { timeout: 30_000 }).toBeGreaterThan(0);
  return events(worker, name)[0] ?? {};
}

test("a worker's first log lines describe its sandboxes, engine, image, runtime and workspaces", async ({
  fleet,
}) => {
  const good = await fleet.worker("good", { ...busybox, BERTH_MEMORY: "64m", BERTH_MODE: "non-main" });
  expect(events(good, "worker.started")).toMatchObject([
    {
      image: busybox.BERTH_IMAGE,
      runtime: "the engine's default",
      network: "none",
      mode: "non-main",
      limits: { memoryBytes: 64 * 1024 ** 2, pids: 256 },
      ...{ idleMs: 1_800_000, maxAgeMs: expect.any(Number), pruneMs: 0 },
    },
  ]);
  const ok = { level: 30, engine: "ok", image: "ok", runtime: "ok", workspaces: "ok" };
  expect(await event(good, "start.checked")).toMatchObject(ok);
  const noImage = await fleet.worker("no-image", { BERTH_IMAGE: "no-such-image:ever" });
  expect(await event(noImage, "start.checked")).toMatchObject({
    ...ok,
    level: 50,
    image: expect.stringContaining("no-such-image:ever is not on this host"),
  });
  const noEngine = await fleet.worker("no-engine", {
    ...busybox,
    DOCKER_HOST: "unix:///nowhere/docker.sock",
  });
  expect(await event(noEngine, "start.checked")).toMatchObject({
    level: 50,
    engine: expect.stringContaining("no container engine answers"),
    workspaces: "ok",
  });
});

test("a worker logs what happens to each container: closed, evicted, rebuilt, replaced", async ({
  fleet,
}) => {
  const env = { ...busybox, BERTH_IDLE_MS: "300", BERTH_PARKED_MS: "500" };
  const worker = await fleet.worker("worker-1", env);
  const berth = fleet.client();
  const acme = berth.tenant("acme");
  await acme.exec("true");
  expect(await event(worker, "sandbox.closed")).toMatchObject({ key: "acme", how: "parked" });
  expect(await event(worker, "sandbox.evicted")).toMatchObject({ key: "acme" });
  const globex = berth.tenant("globex");
  // Keeps the sandbox open until the next job waits for another profile.
  const busy = globex.exec("sleep 600", { timeoutMs: 8_000 });
  await busy.enqueued();
  const running = async () => (await berth.jobs.list())[0]?.state;
  await expect.poll(running, { timeout: 30_000 }).toBe("running");
  await berth.profiles.set("tenant.globex", { limits: { pids: 99 } });
  await expect.poll(() => worker.log).toContain("profile.changed");
  await globex.write("file", "", { session: "beside" });
  expect(await event(worker, "sandbox.rebuilt")).toMatchObject({ key: "globex" });
  await globex.exec("sleep 60").enqueued();
  await expect.poll(running, { timeout: 30_000 }).toBe("running");
  worker.signal("SIGKILL");
  const other = await fleet.worker("worker-2", env);
  await globex.exec("true");
  expect(await event(other, "sandbox.replaced")).toMatchObject({
    key: "globex",
    why: "it was another worker's",
  });
});
