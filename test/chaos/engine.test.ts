import { describe, expect } from "vitest";
import { canRunEngine, machineEngine, test } from "../support/engine.ts";
import { busybox, test as withFleet } from "../support/fleet.ts";
import { exec } from "../support/load.ts";
import { LoadRun, running } from "../support/load-run.ts";

const brisk = { ...busybox, BERTH_LEASE_MS: "4000", BERTH_SWEEP_MS: "500" };

describe("engine that is killed and started again under a running fleet", () => {
  test.skipIf(!canRunEngine)(
    "an engine that is killed and started again under a running fleet breaks no worker and loses no job",
    { timeout: 150_000 },
    async ({ fleet, engine }) => {
      const worker = await fleet.worker("worker-1", brisk);
      const run = new LoadRun(fleet.client());
      const during = await run.submit(exec("acme", "during", "echo up; sleep 20"));
      const idle = await run.submit(exec("globex", "before", "echo up"));
      await Promise.all([running(during), idle.result]);
      await engine.kill();
      const away = performance.now();
      // How it ended is unknown: its container is out of reach.
      expect((await during.result).outcome).toMatchObject({ kind: "lost" });
      console.log(`an engine that died was noticed after ${Math.round(performance.now() - away)} ms`);
      const meanwhile = await run.submit(exec("globex", "meanwhile", "true", { idempotent: true }));
      await engine.start();
      const back = performance.now();
      // It waited for the engine: nothing of it had begun.
      expect((await meanwhile.result).outcome).toEqual({ kind: "exited", code: 0 });
      // Recovery needs no restart of the worker; the breaker's pause is the longest wait.
      const recovered = async (tenant: string) => {
        let tries = 0;
        await expect
          .poll(
            async () =>
              (await (await run.submit(exec(tenant, `${tenant}.after${tries++}`, "true"))).result).outcome,
            {
              timeout: 40_000,
              interval: 500,
            },
          )
          .toEqual({ kind: "exited", code: 0 });
      };
      await Promise.all([recovered("acme"), recovered("globex"), recovered("initech")]);
      console.log(`an engine that came back was used again after ${Math.round(performance.now() - back)} ms`);
      expect(worker.alive).toBe(true);
      await fleet.provesSound(await run.jobs());
    },
  );
});

describe("a container that is removed by hand", () => {
  withFleet(
    "a container that is removed by hand between two jobs costs only a cold start",
    async ({ fleet }) => {
      await fleet.worker("worker-1", brisk);
      const run = new LoadRun(fleet.client());
      await (await run.submit(exec("acme", "before", "echo there > /tmp/warm"))).result;
      const [container] = await fleet.containers();
      await machineEngine()
        .getContainer(container?.id ?? "")
        .remove({ force: true });
      const after = await run.submit(exec("acme", "after", "cat /tmp/warm || cat ledger"));
      expect((await after.result).value.stdout).toBe("+before\n-before\n+after\n");
      expect((await fleet.containers()).map(({ id }) => id)).not.toContain(container?.id);
      await fleet.provesSound(await run.jobs());
    },
  );

  withFleet(
    "a container that is removed by hand during a job ends that job as lost, and no other",
    async ({ fleet }) => {
      const worker = await fleet.worker("worker-1", brisk);
      const run = new LoadRun(fleet.client());
      const during = await run.submit(exec("acme", "during", "echo up; sleep 30"));
      const behind = await run.submit(exec("acme", "behind", "echo next"));
      await running(during);
      const [container] = await fleet.containers();
      await machineEngine()
        .getContainer(container?.id ?? "")
        .remove({ force: true });
      expect((await during.result).outcome).toMatchObject({ kind: "lost" });
      expect((await behind.result).value.stdout).toBe("next\n");
      expect(worker.log).not.toContain("tenancy.fenced");
      await fleet.provesSound(await run.jobs());
    },
  );
});
