import { Enqueuer, JobEvents, Leases, Staging, Wakes } from "@berth/ledger";
import { type Epoch, execLimits, type JobResult, job, sandboxKey, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { type SandboxPort, Tenancy } from "@berth/tenancy";
import { systemClock } from "../../apps/worker/src/clock.ts";
import { readConfig } from "../../apps/worker/src/config.ts";
import { tenancyPorts } from "../../apps/worker/src/tenancy-ports.ts";
import { Turns } from "../../apps/worker/src/turns.ts";

/** What only a real sandbox or a failed job would need. */
const unused = undefined as never;

/** A sandbox in which everything is done at once: what remains is the queue's, the lease's and the streams'. */
const doesNothing: SandboxPort = {
  open: async () => ({
    limits: execLimits.parse({}),
    run: async (): Promise<JobResult> => ({
      outcome: { kind: "done" },
      value: {},
      timing: { wallMs: 0, cpuMs: 0 },
    }),
    destroy: async () => {},
    done: () => {},
  }),
  close: async () => {},
};

export interface NullTenancyOptions {
  /** The worker's own default when absent. */
  readonly leaseMs?: number;
  readonly parallel?: number;
  readonly onFinished?: () => void;
}

/** A tenancy in this process that does nothing for its jobs, on the real Redis. */
export async function nullTenancy(
  redis: Redis,
  tenant: string,
  { leaseMs: wantedMs, parallel = 4, onFinished = () => {} }: NullTenancyOptions = {},
): Promise<{ tenancy: Tenancy; running: Promise<unknown> }> {
  const key = sandboxKey.parse(tenant);
  const leases = new Leases(redis);
  const read = readConfig(wantedMs === undefined ? {} : { BERTH_LEASE_MS: String(wantedMs) });
  if ("problems" in read) throw new Error("a configuration of the bench's own");
  const { BERTH_LEASE_MS: leaseMs } = read.config;
  const taken = await leases.take(key, { worker: workerId.parse("bench"), instance: "bench" }, leaseMs);
  if (!taken.taken) throw new Error("the bench's own sandbox could not be taken");
  const wakes = new Wakes(redis, "bench");
  const ports = tenancyPorts(
    {
      config: read.config,
      instance: "bench",
      redis,
      leases,
      events: new JobEvents(redis),
      staging: new Staging(redis),
      wakes,
      driver: unused,
      artifacts: unused,
      scheduler: { later: () => unused },
      turns: new Turns(1_000),
      clock: systemClock,
      report: ({ event }) => {
        if (event === "job.finished") onFinished();
      },
    },
    key,
    { epoch: taken.epoch as Epoch, deadlineMs: taken.deadlineMs },
    unused,
  );
  const limits = { leaseMs, parallel, idleMs: 0, maxAgeMs: 0 } as const;
  const tenancy = new Tenancy(
    {
      key,
      epoch: taken.epoch,
      takenAtMs: systemClock.now(),
      ...limits,
      onNoSandbox: "refuse",
      removeOnStop: true,
    },
    { ...ports, sandbox: doesNothing },
  );
  return { tenancy, running: tenancy.run().finally(() => wakes.stop()) };
}

/** Enqueues jobs that do nothing, over `sessions` sessions. */
export async function enqueueNothing(
  redis: Redis,
  tenant: string,
  jobs: number,
  sessions: number,
): Promise<void> {
  const enqueuer = new Enqueuer(redis);
  const request = { kind: "stat", path: "" } as const;
  await Promise.all(
    Array.from({ length: jobs }, (_, index) => {
      const id = `${tenant}-${index}`;
      return enqueuer.enqueue(
        job.parse({ version: 1, id, tenant, session: `s${index % sessions}`, request }),
      );
    }),
  );
  await enqueuer.close();
}
