import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isFault, workerId } from "@berth/protocol";
import Docker from "dockerode";
import { describe, expect } from "vitest";
import { startRequest, test } from "../support/host.ts";
import { shown } from "../support/shown.ts";
import { isHeld } from "../support/warm.ts";

const docker = new Docker(
  process.env.DOCKER_HOST?.startsWith("unix://") ? { socketPath: process.env.DOCKER_HOST.slice(7) } : {},
);
const worker2 = { worker: workerId.parse("worker-2") };

async function idOf(driver: { list(): Promise<{ id: string }[]> }): Promise<string | undefined> {
  return (await driver.list())[0]?.id;
}

describe("parked container", () => {
  test("a parked container has no process but init, and any worker of its host adopts it with its files in /tmp", async ({
    host,
  }) => {
    const driver = host.driver();
    const first = await host.sandbox({ epoch: 1, leaseMs: 500 }, driver);
    await first.exec({ command: "setsid sleep 600 & (sleep 601; true) & echo kept > /tmp/kept" });
    const id = await idOf(driver);
    expect(await first.park()).toBe(true);
    const top = await docker.getContainer(id ?? "").top();
    expect(top.Processes).toHaveLength(1);
    expect(await driver.parked()).toMatchObject([{ key: "acme", worker: "worker-1", containerId: id }]);
    expect((await driver.parked())[0]?.memoryBytes).toBeGreaterThan(100_000);
    // A lease's length later no watchdog has done anything: otherwise the next holder would see it.
    await new Promise((resolve) => setTimeout(resolve, 800));

    const other = host.driver(worker2);
    const second = await host.sandbox({ epoch: 2 }, other);
    expect(second.origin).toMatchObject({
      how: "adopted",
      link: "unix",
      killedLeftovers: 0,
      watchdogFired: false,
    });
    expect(await idOf(other)).toBe(id);
    expect(shown(await second.exec({ command: "cat /tmp/kept; pgrep -c sleep" })).stdout).toBe("kept\n0\n");
    // It is the second worker's now, although the first one's name is on its label.
    expect(await driver.list()).toMatchObject([{ id, worker: "worker-2" }]);
    expect(await driver.parked()).toEqual([]);
  });

  test("a parked container is adopted by one of several workers that want it, and goes from worker to worker", async ({
    host,
  }) => {
    const drivers = [
      host.driver(),
      host.driver(worker2),
      host.driver({ worker: workerId.parse("worker-3") }),
    ];
    const first = await host.sandbox({ epoch: 1 }, drivers[0]);
    const id = await idOf(host.driver());
    for (let epoch = 2; epoch < 6; epoch++) {
      const held = epoch === 2 ? first : await host.sandbox({ epoch }, drivers[epoch % 3]);
      expect(await held.park()).toBe(true);
      expect(await idOf(host.driver())).toBe(id);
    }
    const claims = await Promise.all(drivers.map((driver) => driver.evict(startRequest().key)));
    expect(claims.filter(Boolean)).toHaveLength(1);
    expect(await host.driver().list()).toEqual([]);
  });

  test("a parked container is not adopted, but replaced, when it is set up otherwise or has died", async ({
    host,
  }) => {
    const driver = host.driver();
    const first = await host.sandbox({ epoch: 1 }, driver);
    await first.files.write("kept", "yes");
    await first.park();
    const second = await host.sandbox({ epoch: 2, profile: { limits: { pids: 100 } } }, driver);
    expect(second.origin.how).toBe("started");
    await second.park();
    await docker.getContainer((await idOf(driver)) ?? "").kill();
    const third = await host.sandbox({ epoch: 3, profile: { limits: { pids: 100 } } }, driver);
    expect(third.origin.how).toBe("started");
    expect(shown(await third.exec({ command: "cat kept" })).stdout).toBe("yes");
    expect(await driver.list()).toHaveLength(1);
  });

  test("a parked container refuses a holder with a lower epoch, and stays parked for the right one", async ({
    host,
  }) => {
    const driver = host.driver();
    await (await host.sandbox({ epoch: 5 }, driver)).park();
    await expect(driver.start(startRequest({ epoch: 4 }))).rejects.toSatisfy((error) =>
      isFault(error, "fenced"),
    );
    expect((await host.sandbox({ epoch: 6 }, driver)).origin.how).toBe("adopted");
  });

  test("a parked container is removed when its adopter gives the sandbox up before init has answered", async ({
    host,
  }) => {
    const driver = host.driver();
    const first = await host.sandbox({ epoch: 1 }, driver);
    await first.park();
    const { State } = await docker.getContainer((await idOf(driver)) ?? "").inspect();
    process.kill(State.Pid, "SIGSTOP");
    const giveUp = new AbortController();
    const adopting = host.driver(worker2).start(startRequest({ epoch: 2 }), { signal: giveUp.signal });
    const aborted = expect(adopting).rejects.toSatisfy((error) => isFault(error, "aborted"));
    await expect.poll(() => isHeld(host.workspacesRoot)).toBe(true);
    giveUp.abort("given up");
    await aborted;
    expect(await driver.list()).toEqual([]);
    expect(isHeld(host.workspacesRoot)).toBe(false);
  });

  test("a parked container whose file is lost or unreadable is replaced", async ({ host }) => {
    const first = await host.sandbox({ epoch: 1 }, host.driver());
    await first.park();
    const root = join(host.workspacesRoot, ".parked");
    const [scope = ""] = await readdir(root);
    const [name = ""] = await readdir(join(root, scope));
    await writeFile(join(root, scope, name), '{"containerId":');
    const second = await host.sandbox({ epoch: 2 }, host.driver(worker2));
    expect(second.origin.how).toBe("started");
    expect(await host.driver().list()).toHaveLength(1);
  });

  test("a parked container that its adopter claimed before it died is found by the adopter's next life, and by the next holder", async ({
    host,
  }) => {
    const driver = host.driver();
    const first = await host.sandbox({ epoch: 1 }, driver);
    const id = await idOf(driver);
    await first.park();
    const [second, other] = [host.driver(worker2), host.driver({ worker: workerId.parse("worker-3") })];
    const held = await host.sandbox({ epoch: 2 }, second);
    held.detach();
    // Its worker's next life finds it as its own.
    expect(await second.list()).toMatchObject([{ id, worker: "worker-2", key: "acme" }]);
    const again = await host.sandbox({ epoch: 3 }, second);
    expect(again.origin.how).toBe("adopted");
    again.detach();
    // A third worker that gets the lease replaces it: what runs in it was not confirmed to have ended.
    expect((await host.sandbox({ epoch: 4 }, other)).origin.how).toBe("started");
    expect(await other.list()).toMatchObject([{ worker: "worker-3" }]);
  });
});
