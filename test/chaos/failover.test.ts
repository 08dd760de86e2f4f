import type { EnqueuedJob } from "@berth/client";
import { isFault, redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";
import { exec, type PlannedJob, plannedLoad } from "../support/load.ts";
import { LoadRun, running } from "../support/load-run.ts";

const replicated = { accept: "replicated", replicas: 1 } as const;
const worker = {
  ...busybox,
  // Longer than a failover, so that what runs meanwhile is not given up.
  BERTH_LEASE_MS: "15000",
  BERTH_SWEEP_MS: "500",
  BERTH_ACCEPT: replicated.accept,
};
const victim = "tenant-0";
const lease = redisKeys.lease(sandboxKey.parse(victim));

describe.each(["cluster", "sentinel"] as const)("a primary of a %s that dies under load", (topology) => {
  test.extend({ topology })(
    "takes no acknowledged job along, and none runs twice, where replicas acknowledge",
    async ({ fleet }) => {
      await fleet.worker("worker-1", worker);
      await fleet.worker("worker-2", worker);
      const run = new LoadRun(fleet.client(replicated));
      const long = exec(victim, "long", "echo up; sleep 5; echo down", { session: "long" });
      await running(await run.submit(long));
      const load = [...plannedLoad({ seed: 41, tenants: 6, sessions: 2, jobs: 300, sleepMs: 60 })];
      for (const planned of load.slice(0, 150)) await run.submit(planned);
      const killedMs = performance.now();
      const sinceMs = () => `${Math.round(performance.now() - killedMs)} ms`;
      const dead = await fleet.redis.killPrimary(lease);
      // Nothing is accepted while the new primary has no replica.
      const returning = fleet.redis.bringBack(dead, lease).then(sinceMs);
      const after = await accepted(run, exec(victim, "after", "true", { session: "after", id: "after" }));
      const acceptedMs = sinceMs();
      await after.result;
      const endedMs = sinceMs();
      console.log(
        `${topology}: a primary died; after ${await returning} it was back as a replica, after ${acceptedMs} a job was accepted, after ${endedMs} it had ended`,
      );
      for (const planned of load.slice(150)) await run.submit(planned);
      const kinds = new Set((await run.results()).map(({ outcome }) => outcome.kind));
      expect(kinds.difference(new Set(["exited", "done"]))).toEqual(new Set());
      expect((await run.jobs()).length).toBe(302);
      await fleet.provesSound(await run.jobs(), { isToldOnce: topology !== "cluster" });
    },
  );
});

/** As a producer would that has to get its job in: under the same id, until the fleet has it. */
async function accepted(run: LoadRun, planned: PlannedJob): Promise<EnqueuedJob> {
  for (;;) {
    try {
      return await run.submit(planned);
    } catch (error) {
      if (!isFault(error) || !error.retry) throw error;
    }
  }
}
