import {
  Approvals,
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
  measuredText,
  type Renewals,
  SharedHomes,
  SnapshotStore,
  type Staging,
  ToolStore,
  unfinishedKeys,
  type Wakes,
} from "@berth/ledger";
import { type Epoch, type Fault, type SandboxKey, tenantOf, type WrittenFile } from "@berth/protocol";
import { failsOver, type Redis, refusesWrites } from "@berth/redis";
import type { SandboxDriver } from "@berth/sandbox";
import type { Beginner, Clock, FetchedJob, JobsPort, TenancyEvent, TenancyPorts } from "@berth/tenancy";
import { z } from "zod";
import { ApprovalGate } from "./approval-gate.ts";
import type { ApprovalWebhook } from "./approval-webhook.ts";
import type { Config } from "./config.ts";
import type { EgressGates } from "./egress.ts";
import { blamesHost } from "./host-blame.ts";
import { toolsOf } from "./job-tools.ts";
import type { Parking } from "./parking.ts";
import { placementOf } from "./placement.ts";
import type { Policy } from "./policy.ts";
import { SandboxEgress } from "./sandbox-egress.ts";
import { DriverSandbox } from "./sandbox-port.ts";
import type { Scheduler } from "./scheduler.ts";
import { SandboxSecrets } from "./secrets/sandbox-secrets.ts";
import type { TenantSecrets } from "./secrets/tenant-secrets.ts";
import { SandboxSnapshots } from "./snapshots/sandbox-snapshots.ts";
import type { Turns } from "./turns.ts";

const stagedJob = z.looseObject({ staged: z.object({ bytes: z.number(), sha256: z.string() }) });

/** Pause before a failed note of a start is tried again: Redis may be away. */
const noteAgainMs = 250;

/** Gets the outcome of each start of one sandbox. */
export interface StartsReport {
  readonly started: () => void;
  /** The start failed because of this host or its engine. */
  readonly failed: (fault: Fault) => void;
}

/** What every tenancy of a worker shares. */
export interface TenancyParts {
  readonly config: Config;
  readonly instance: string;
  /** An earlier instance of this worker that is known to be dead. */
  readonly predecessor?: string | undefined;
  readonly redis: Redis;
  readonly leases: Leases;
  readonly renewals: Renewals;
  readonly events: JobEvents;
  readonly staging: Staging;
  readonly artifacts: ArtifactStore;
  readonly driver: SandboxDriver;
  readonly egress: EgressGates;
  readonly policy: Policy;
  readonly secrets: TenantSecrets;
  readonly turns: Turns;
  readonly scheduler: Pick<Scheduler, "later" | "hurry">;
  readonly approvalWebhook: ApprovalWebhook;
  readonly wakes: Wakes;
  readonly parking: Pick<Parking, "lookSoon">;
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
  const { leaseMs, workerId: worker, host, pools } = config;
  const { epoch } = taken;
  const holding = { epoch, instance };
  const source = new JobSource(redis, key, holding, parts.wakes, events.exchanges);
  const to = (jobId: string, inbox?: string) => ({ key, ...holding, jobId, inbox });
  let deadlineMs = taken.deadlineMs;
  const timely = (position: Beginner["position"]) => ({ ...position, notAfterMs: deadlineMs });
  const started = (attempt: number) => ({ worker, epoch, attempt, atMs: Math.round(clock.wall()) });
  let noted = "";
  const renew = async () => {
    // A size is sent only when it has changed; a release sends it again.
    const bytes = sandbox.lastBytes;
    const text = measuredText(bytes);
    const renewed = await parts.renewals.renew(key, epoch, text === noted ? undefined : bytes);
    if (renewed.state === "lost") return renewed.state;
    noted = text;
    if (bytes) sandbox.forgetLeft(bytes.shared);
    deadlineMs = renewed.deadlineMs;
    return renewed.state;
  };
  const gate = new ApprovalGate({
    key,
    approvals: new Approvals(redis),
    later: parts.scheduler.later(key),
    hurry: (jobId) => parts.scheduler.hurry(key, jobId),
    onAsked: (job, expiresMs, asked) => {
      report({ event: "approval.waiting", key, jobId: job.id, tenant: job.tenant, expiresMs });
      parts.approvalWebhook.notify(key, job, { ...asked, expiresMs });
    },
  });
  const secrets = new SandboxSecrets(key, parts.secrets, config.variables);
  const sandbox = new DriverSandbox(driver, {
    ...{ key, ...holding, leaseMs, policy: parts.policy, artifacts: parts.artifacts },
    grants: new Grants(redis),
    // Without a call to Redis where every pool is granted to all tenants.
    pool: async () =>
      pools.every((pool) => pool === grantedToAll) ? grantedToAll : (await leases.offerTarget(key)).pool,
    tools: (job, profile) => toolsOf(job, profile, new ToolStore(redis)),
    approved: (job, options) => gate.check(job, options),
    tie: async (shared) => {
      const home = homeOf(config);
      if (home !== undefined) await new SharedHomes(redis).tie({ key, epoch: holding.epoch }, shared, home);
    },
    snapshots: new SandboxSnapshots({
      ...{ key, holding, home: homeOf(config) },
      trees: () => driver.trees,
      store: new SnapshotStore(redis),
      homes: new SharedHomes(redis),
    }),
    onStarted: async (opened, signal) => {
      starts.started();
      report({ event: "sandbox.opened", key, ...opened });
      await noteStarted(parts, key, holding, signal);
    },
    onClosed: (how) => {
      if (how === "parked") parts.parking.lookSoon();
      report({ event: "sandbox.closed", key, how });
    },
    // Only lists of sandboxes read this, so a failure is ignored.
    onDestroyed: async () => void (await leases.destroyed(key, holding).catch(() => false)),
    onGone: async () => void (await leases.forgetDestroyed(key, holding).catch(() => false)),
    onRebuilt: () => report({ event: "sandbox.rebuilt", key }),
    onRestarted: () => report({ event: "sandbox.replaced", key, why: "its container had ended" }),
    isHeld: async () => (await renew().catch(() => "lost")) !== "lost",
    secrets,
    egress: new SandboxEgress(parts.egress, key, secrets),
    onLeak: (found) => report({ event: "job.leaked", key, ...found }),
    onSetUp: (setUp) => {
      report({ event: "sandbox.set-up", key, ok: setUp.ok, how: setUp.how, wallMs: setUp.wallMs });
      // Only operators read this, so a failure is ignored.
      leases.noteSetUp({ key, epoch: holding.epoch }, setUp).catch(() => {});
    },
    onCopied: (peer, { atMs: _, ...copied }) => report({ event: "team.copied", key, peer, ...copied }),
    onStartFailed: (error) => {
      if (blamesHost(error, config.base)) starts.failed(error);
    },
  });
  return {
    clock,
    report,
    turns: turns.of({ tenant: tenantOf(key), weight: () => sandbox.weight }),
    later: gate.later,
    lease: {
      renew: async () => {
        try {
          return await renew();
        } catch (error) {
          // While a single Redis refuses writes, no other worker can take the lease. After a failover one might.
          if (refusesWrites(error) && !failsOver(redis)) return "refused";
          throw error;
        }
      },
      release: async ({ onlyIfEmpty }) =>
        (
          await leases.release(key, holding, {
            onlyIfEmpty,
            queueKeys: unfinishedKeys(key),
            bytes: sandbox.lastBytes,
          })
        ).state,
    },
    jobs: jobsPort(source, parts.staging, key, (take) => ({
      take,
      data: JSON.stringify({ worker, epoch, atMs: Math.round(clock.wall()) }),
      notAfterMs: deadlineMs,
    })),
    events: {
      begin: (jobId, attempt, position) => events.begin(to(jobId), timely(position), started(attempt)),
      unbegin: (jobId, attempt, takes) => events.unbegin(key, jobId, { worker, epoch, attempt, takes }),
      output: (jobId, part, pieces) =>
        events.publish(
          { ...to(jobId), part: `${epoch}-${part}` },
          pieces.map(({ stream, bytes }) => ({ type: stream, bytes })),
        ),
      artifact: (jobId, part, artifact) =>
        events.publish({ ...to(jobId), part: `${epoch}-${part}` }, [{ type: "artifact", artifact }]),
      finished: ({ id, attempt, inbox }, result, { leaves, files = [] }) =>
        events.publish({ ...to(id, inbox), ends: { attempt, leaves } }, [
          ...files.map(fileEvent),
          { type: "finished", result: { ...result, worker, host } },
        ]),
      finishedAndBegun: async ({ id, attempt, inbox }, result, { next, files = [] }) => {
        const [published, begun] = await events.endAndBegin(
          { ...to(id, inbox), ends: { attempt, leaves: true } },
          {
            events: files.map(fileEvent),
            finished: { type: "finished", result: { ...result, worker, host } },
            next: { jobId: next.jobId, position: timely(next.position), started: started(next.attempt) },
          },
        );
        return { published, begun };
      },
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
    placement: placementOf(key, holding.epoch, { leases, fleet: new FleetView(redis), worker }),
    sandbox,
  };
}

/** Whose disk has the workspaces of this worker's sandboxes; undefined where every worker sees the same ones. */
export function homeOf({ storage, host }: Config): string | undefined {
  return storage === "local" ? host : undefined;
}

/** Retries until Redis has stored the home: a sandbox with files but without a home could start empty on another host. */
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

function fileEvent(file: WrittenFile) {
  return { type: "file", file } as const;
}

function isStaged(data: unknown): boolean {
  return typeof data === "object" && data !== null && "staged" in data;
}

/** Puts a request that was too large for the queue back into its job. `started`: the event of a job that begins now. */
function jobsPort(
  source: JobSource,
  staging: Staging,
  key: SandboxKey,
  started: (take: string) => BeginningAtOnce,
): JobsPort {
  const whole = (held: HeldJob): FetchedJob => {
    let stagedBytes = 0;
    return {
      ...held,
      get bytes() {
        return held.bytes + stagedBytes;
      },
      load: async () => {
        const data = await held.load();
        // Most jobs are whole, and need no second parsing.
        if (!isStaged(data)) return data;
        const { staged, ...rest } = stagedJob.safeParse(data).data ?? {};
        if (staged === undefined) return data;
        stagedBytes = staged.bytes;
        return { ...rest, request: await staging.take(key, held.id, staged) };
      },
    };
  };
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
