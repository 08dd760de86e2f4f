import {
  type ArtifactStore,
  type BeginningAtOnce,
  FleetView,
  Grants,
  grantedToAll,
  type HeldJob,
  type Holding,
  type JobEvents,
  JobSource,
  type Leases,
  type Renewals,
  type Staging,
  unfinishedKeys,
  type Wakes,
} from "@berth/ledger";
import { type Epoch, type Fault, isHostFault, type SandboxKey } from "@berth/protocol";
import { failsOver, type Redis, refusesWrites } from "@berth/redis";
import type { SandboxDriver } from "@berth/sandbox";
import type { Clock, FetchedJob, JobsPort, TenancyEvent, TenancyPorts, TurnsPort } from "@berth/tenancy";
import { z } from "zod";
import type { Config } from "./config.ts";
import { placementOf } from "./placement.ts";
import type { Policy } from "./policy.ts";
import { DriverSandbox } from "./sandbox-port.ts";
import type { Scheduler } from "./scheduler.ts";

const stagedJob = z.looseObject({ staged: z.object({ bytes: z.number(), sha256: z.string() }) });

/** Pause before noting a start is tried again, as while Redis is away. */
const noteAgainMs = 250;

/** How starting one sandbox goes on this host. */
export interface StartsReport {
  readonly started: () => void;
  /** Because of this host or its engine. */
  readonly failed: (fault: Fault) => void;
}

/** What every tenancy of a worker shares. */
export interface TenancyParts {
  readonly config: Config;
  readonly instance: string;
  /** An earlier instance of this worker that is known to be dead. */
  readonly heirOf?: string | undefined;
  readonly redis: Redis;
  readonly leases: Leases;
  readonly renewals: Renewals;
  readonly events: JobEvents;
  readonly staging: Staging;
  readonly artifacts: ArtifactStore;
  readonly driver: SandboxDriver;
  readonly policy: Policy;
  readonly turns: TurnsPort;
  readonly scheduler: Pick<Scheduler, "later">;
  readonly wakes: Wakes;
  readonly clock: Clock;
  readonly report: (event: TenancyEvent) => void;
}

/** A lease as it was taken. */
export interface TakenLease {
  readonly epoch: Epoch;
  /** By Redis' clock. */
  readonly deadlineMs: number;
}

/** Redis and Docker, as one tenancy sees them. */
export function tenancyPorts(
  parts: TenancyParts,
  key: SandboxKey,
  taken: TakenLease,
  starts: StartsReport,
): TenancyPorts {
  const { config, redis, leases, events, driver, turns, clock, report, instance } = parts;
  const { BERTH_LEASE_MS: leaseMs, BERTH_WORKER_ID: worker, BERTH_HOST: host } = config;
  const { BERTH_POOLS: pools } = config;
  const { epoch } = taken;
  const holding = { epoch, instance };
  const source = new JobSource(redis, key, holding, parts.wakes, events.exchanges);
  const to = (jobId: string, inbox?: string) => ({ key, ...holding, jobId, inbox });
  let deadlineMs = taken.deadlineMs;
  return {
    clock,
    report,
    turns,
    later: parts.scheduler.later(key),
    lease: {
      renew: async () => {
        try {
          const renewed = await parts.renewals.renew(key, epoch);
          if (renewed.state !== "lost") deadlineMs = renewed.deadlineMs;
          return renewed.state;
        } catch (error) {
          // A single Redis that refuses gives the lease to nobody else. A replica of another might.
          if (refusesWrites(error) && !failsOver(redis)) return "refused";
          throw error;
        }
      },
      release: async ({ onlyIfEmpty }) =>
        (await leases.release(key, holding, { onlyIfEmpty, queueKeys: unfinishedKeys(key) })).state,
    },
    jobs: jobsPort(source, parts.staging, key, (take) => ({
      take,
      data: JSON.stringify({ worker, epoch, atMs: Math.round(clock.wall()) }),
      notAfterMs: deadlineMs,
    })),
    events: {
      begin: (jobId, attempt, place) =>
        events.begin(
          to(jobId),
          { ...place, notAfterMs: deadlineMs },
          { worker, epoch, attempt, atMs: Math.round(clock.wall()) },
        ),
      unbegin: (jobId, attempt, takes) => events.unbegin(key, jobId, { worker, epoch, attempt, takes }),
      output: (jobId, part, pieces) =>
        events.publish(
          { ...to(jobId), part: `${epoch}-${part}` },
          pieces.map(({ stream, bytes }) => ({ type: stream, bytes })),
        ),
      artifact: (jobId, part, artifact) =>
        events.publish({ ...to(jobId), part: `${epoch}-${part}` }, [{ type: "artifact", artifact }]),
      finished: ({ id, attempt, inbox }, result, { leaves }) =>
        events.publish({ ...to(id, inbox), ends: { attempt, leaves } }, [
          { type: "finished", result: { ...result, worker, host } },
        ]),
      retrying: (jobId, ended) =>
        events.publish(
          {
            ...to(jobId),
            part: `${epoch}-retrying-${ended.attempt}`,
            ends: { attempt: ended.attempt, leaves: true },
          },
          [{ type: "retrying", ...ended }],
        ),
      progress: (jobId, attempt) => events.attemptProgress(key, jobId, attempt),
    },
    placement: placementOf(key, { leases, fleet: new FleetView(redis), worker }),
    sandbox: new DriverSandbox(driver, {
      ...{ key, ...holding, leaseMs, policy: parts.policy, artifacts: parts.artifacts },
      grants: new Grants(redis),
      // Redis need not be asked where there is one pool, which everybody may use.
      pool: async () =>
        pools.every((pool) => pool === grantedToAll) ? grantedToAll : (await leases.place(key)).pool,
      onStarted: async (signal) => {
        starts.started();
        await noteStarted(parts, key, holding, signal);
      },
      onStartFailed: (error) => (isHostFault(error) ? starts.failed(error) : undefined),
    }),
  };
}

/** Whose disk has the workspaces of this worker's sandboxes; undefined where every worker sees the same ones. */
export function homeOf({ BERTH_STORAGE: storage, BERTH_HOST: host }: Config): string | undefined {
  return storage === "local" ? host : undefined;
}

/** Retries until Redis has it: a sandbox with files but without a home could start empty on another host. */
async function noteStarted(
  { leases, config, clock }: TenancyParts,
  key: SandboxKey,
  holding: Holding,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const noted = await leases.started(key, holding, homeOf(config)).catch(() => undefined);
    if (noted === true) return;
    if (noted === false) throw new Error(`epoch ${holding.epoch} no longer holds ${key}`);
    await clock.sleep(noteAgainMs, signal);
  }
}

/** A request that was too large for the queue is put back where it belongs. `started`: what is said of a job that begins now. */
function jobsPort(
  source: JobSource,
  staging: Staging,
  key: SandboxKey,
  started: (take: string) => BeginningAtOnce,
): JobsPort {
  const whole = (held: HeldJob): FetchedJob => ({
    ...held,
    load: async () => {
      const data = await held.load();
      const { staged, ...rest } = stagedJob.safeParse(data).data ?? {};
      return staged === undefined ? data : { ...rest, request: await staging.take(key, held.id, staged) };
    },
  });
  return {
    next: async (waitMs, atOnce) => {
      const beginning = () => {
        const take = atOnce?.take();
        return take === undefined ? undefined : started(take);
      };
      const held = await source.next(waitMs, atOnce && { beginning, onBehind: atOnce.onBehind });
      return held && whole(held);
    },
    nextBeside: async (sessions) => {
      const held = await source.nextBeside(sessions);
      return held && whole(held);
    },
    active: async () => (await source.active()).map(whole),
    wake: () => source.wake(),
    close: () => source.close(),
  };
}
