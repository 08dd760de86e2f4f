import { workerId } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/host.ts";
import { adoptOwnContainers } from "../src/own-containers.ts";

const log = { info: () => {}, error: () => {} };

describe("containers that an earlier process of a worker left", () => {
  test("a container that another worker parks while they are listed is not removed", async ({ host }) => {
    const [driver, other] = [host.driver(), host.driver({ worker: workerId.parse("worker-2") })];
    await (await host.sandbox({ epoch: 1 }, driver)).park();
    // The second worker has it, with the first one's name on its labels.
    const held = await host.sandbox({ epoch: 2 }, other);
    const [container] = await driver.list();
    let isGated = true;
    await adoptOwnContainers({
      driver: {
        list: async () => {
          if (isGated) await held.park();
          isGated = false;
          return driver.list();
        },
        reap: (unwanted) => driver.reap(unwanted),
      },
      member: { adopt: async () => false },
      worker: workerId.parse("worker-1"),
      log,
    });
    expect(await driver.list()).toMatchObject([{ id: container?.id }]);
    expect((await host.sandbox({ epoch: 3 }, other)).origin.how).toBe("adopted");
  });

  test("a container that no worker parked or holds is removed", async ({ host }) => {
    const driver = host.driver();
    (await host.sandbox({ epoch: 1 }, driver)).detach();
    const member = { adopt: async () => false };
    await adoptOwnContainers({ driver, member, worker: workerId.parse("worker-1"), log });
    expect(await driver.list()).toEqual([]);
  });
});
