import type { EnqueuedJob } from "@berth/client";
import { isFault, redisKeys, type SandboxKey, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";
import { holderBreaches } from "../support/history-rules.ts";
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
    "with acknowledging replicas a dying primary loses no accepted job, and none runs twice",
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
      await fleet.provesSound(await run.jobs(), { isPublishedOnce: topology !== "cluster" });
    },
  );
});

describe.each(["cluster", "sentinel"] as const)("a primary of a %s whose replica is behind", (topology) => {
  test.extend({ topology })(
    "a primary that dies with accepted jobs ends every wait, and a resubmitted job runs",
    async ({ fleet }) => {
      const asynchronous = { ...worker, BERTH_ACCEPT: "primary" };
      await fleet.worker("worker-1", asynchronous);
      await fleet.worker("worker-2", asynchronous);
      const run = new LoadRun(fleet.client());
      const load = [...plannedLoad({ seed: 43, tenants: 6, sessions: 2, jobs: 120, sleepMs: 60 })];
      const jobs: EnqueuedJob[] = [];
      jobs.push(await run.submit(exec(victim, "long", "echo up; sleep 12; echo down", { session: "long" })));
      for (const planned of load.slice(0, 60)) jobs.push(await run.submit(planned));
      await running(jobs[0] as EnqueuedJob);
      await fleet.redis.cutReplication(lease);
      const gone = exec(victim, "gone", "echo here", { session: "long", id: "gone" });
      const forgotten = await run.submit(gone);
      jobs.push(forgotten);
      for (const planned of load.slice(60)) jobs.push(await run.submit(planned));
      const killedMs = performance.now();
      const sinceMs = () => Math.round(performance.now() - killedMs);
      await fleet.redis.killPrimary(lease);
      jobs.push(await accepted(run, exec(victim, "after", "true", { session: "after", id: "after" })));
      const acceptedMs = sinceMs();
      await jobs.at(-1)?.result;
      const endedMs = sinceMs();
      const ends = await Promise.all(
        jobs.map(({ result }) =>
          result.then(
            ({ outcome }) => outcome.kind as string,
            (fault) => (isFault(fault) ? fault.code : String(fault)),
          ),
        ),
      );
      const count = (what: string) => ends.filter((end) => end === what).length;
      console.log(
        `${topology}: a primary died whose replica was behind; after ${acceptedMs} ms a job was accepted, after ${endedMs} ms it had ended, after ${sinceMs()} ms every wait: ${count("job-unknown")} of ${jobs.length} jobs were unknown, ${count("lost")} lost`,
      );
      expect(new Set(ends).difference(new Set(["exited", "done", "lost", "job-unknown"]))).toEqual(new Set());
      await expect(forgotten.result).rejects.toMatchObject({ code: "job-unknown" });
      expect((await (await run.submit(gone)).result).value.stdout).toBe("here\n");
      const history = async () => fleet.history(await run.jobs());
      await expect.poll(async () => holderBreaches(await history()), { interval: 250 }).toEqual([]);
    },
  );
});

describe("a primary with one replica that dies, where replicas acknowledge while there are any", () => {
  test.extend({ topology: "sentinel" })(
    "with BERTH_REPLICAS=0 a failover stops acceptance only while it lasts, and loses no accepted job",
    async ({ fleet }) => {
      await fleet.worker("worker-1", { ...worker, BERTH_REPLICAS: "0" });
      const run = new LoadRun(fleet.client({ accept: "replicated", replicas: 0 }));
      for (const planned of plannedLoad({ seed: 47, tenants: 3, sessions: 2, jobs: 60, sleepMs: 60 }))
        await run.submit(planned);
      const killedMs = performance.now();
      await fleet.redis.killPrimary(lease);
      const after = await accepted(run, exec(victim, "after", "true", { session: "after", id: "after" }));
      const acceptedMs = Math.round(performance.now() - killedMs);
      await after.result;
      console.log(`a primary with one replica died; after ${acceptedMs} ms its replica accepted a job alone`);
      const kinds = new Set((await run.results()).map(({ outcome }) => outcome.kind));
      expect(kinds.difference(new Set(["exited", "done"]))).toEqual(new Set());
      await fleet.provesSound(await run.jobs());
    },
  );
});

describe("a primary of a cluster that is away with its replica", () => {
  test.extend({ topology: "cluster" })(
    "an absent shard stops only its own tenants, and all jobs end when it is back",
    async ({ fleet }) => {
      await fleet.worker("worker-1", { ...worker, BERTH_ACCEPT: "primary" });
      const run = new LoadRun(fleet.client());
      const redis = fleet.redis.connect();
      const doomed = await fleet.redis.primaryOf(redisKeys.leases);
      const onDoomed = new Map<boolean, SandboxKey>();
      for (let index = 0; onDoomed.size < 2; index++) {
        const key = sandboxKey.parse(`tenant-${index}`);
        onDoomed.set((await fleet.redis.primaryOf(redisKeys.lease(key))) === doomed, key);
      }
      const jobs = new Map<SandboxKey, EnqueuedJob[]>();
      for (const key of onDoomed.values()) {
        const first = await run.submit(exec(key, `${key}.0`, "echo up; sleep 2", { idempotent: true }));
        await running(first);
        const rest = Array.from({ length: 5 }, (_, index) =>
          run.submit(exec(key, `${key}.${index + 1}`, "sleep 0.1", { idempotent: true })),
        );
        jobs.set(key, [first, ...(await Promise.all(rest))]);
      }
      const other = onDoomed.get(false) as SandboxKey;
      const pair = await fleet.redis.killWithReplica(redisKeys.leases);
      const isOver = async ({ id }: EnqueuedJob) => {
        const [last] = await redis.xrevrange(redisKeys.events(other, id), "+", "-", "COUNT", 1);
        return last?.[1].includes("finished") === true;
      };
      const overs = async () =>
        (await Promise.all((jobs.get(other) ?? []).map(isOver))).filter(Boolean).length;
      await expect.poll(overs).toBe(6);
      await Promise.all(pair.map((server) => server.start()));
      const kinds = new Set((await run.results()).map(({ outcome }) => outcome.kind));
      expect(kinds).toEqual(new Set(["exited"]));
      await fleet.provesSound(await run.jobs(), { isPublishedOnce: false });
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
