import {
  redisKeys,
  type SandboxKey,
  type SetUpReport,
  sandboxKey,
  type TenantId,
  tenantOf,
  type WorkerId,
  writesRefusedMs,
} from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { readWorkerInstance } from "../fleet/worker-record.ts";
import { ceilingDefaults, ceilingFacts, tenantFull } from "../queues/admission.ts";
import type { OfferTarget } from "../queues/offers.ts";
import { unfinishedKeys } from "../queues/queue-layout.ts";
import { redisNow } from "../redis-now.ts";
import { isCluster, runInSlot } from "../slots.ts";
import { type Noter, noteSetUp, noteTrouble, readLease } from "./lease-record.ts";

const count = z.number().int().min(0);
const flag = z.union([z.literal(0), z.literal(1)]).transform((value) => value === 1);

const takeReply = z.union([
  z.tuple([z.literal(["taken", "inherited"]), count, count]).transform(([word, epoch, deadlineMs]) => ({
    taken: true as const,
    epoch,
    deadlineMs,
    takenOver: word === "inherited",
  })),
  z
    .tuple([z.literal(["held", "elsewhere", "replaced"]), z.string()])
    .transform(([why, by]) => ({ taken: false as const, why, by })),
  z.tuple([z.literal("paused")]).transform(([why]) => ({ taken: false as const, why, by: undefined })),
  tenantFull.transform(([why]) => ({ taken: false as const, why, by: undefined })),
]);
const lost = z
  .tuple([z.literal("lost"), count])
  .transform(([state, highestEpoch]) => ({ state, highestEpoch }));
const renewReply = z.union([
  z
    .tuple([z.literal(["renewed", "paused"]), count])
    .transform(([state, deadlineMs]) => ({ state, deadlineMs })),
  lost,
]);
const releaseReply = z.union([
  z
    .tuple([z.literal("released"), count, count])
    .transform(([state, left, deadlineMs]) => ({ state, left, deadlineMs })),
  z.tuple([z.literal("kept"), count]).transform(([state, left]) => ({ state, left })),
  lost,
]);

const unheldReply = z
  .tuple([z.string()], sandboxKey)
  .transform(([next, ...keys]) => ({ keys, next: next === "" ? undefined : Number(next) }));

export type TakeResult = z.infer<typeof takeReply>;
export type RenewResult = z.infer<typeof renewReply>;
export type ReleaseResult =
  | { readonly state: "released" | "kept"; readonly left: number }
  | z.infer<typeof lost>;

function lua(name: string): URL {
  return new URL(`../../lua/${name}.lua`, import.meta.url);
}

const take = new Script({ name: "take", file: lua("take"), parse: (reply) => takeReply.parse(reply) });
const renew = new Script({
  name: "renew",
  file: lua("renew"),
  parse: (reply) => z.array(renewReply).parse(reply),
});
const release = new Script({
  name: "release",
  file: lua("release"),
  parse: (reply) => releaseReply.parse(reply),
});
const unlist = new Script({ name: "unlist", file: lua("unlist"), parse: (reply) => flag.parse(reply) });
const unheld = new Script({
  name: "unheld",
  file: lua("unheld"),
  parse: (reply) => unheldReply.parse(reply),
});
const lapsed = new Script({
  name: "lapsed",
  file: lua("lapsed"),
  parse: (reply) => z.array(sandboxKey).parse(reply),
});
const started = new Script({ name: "started", file: lua("started"), parse: (reply) => flag.parse(reply) });
const destroyed = new Script({
  name: "destroyed",
  file: lua("destroyed"),
  parse: (reply) => flag.parse(reply),
});
const forgetDestroyed = new Script({
  name: "forget-destroyed",
  file: lua("forget-destroyed"),
  parse: (reply) => flag.parse(reply),
});
const startFailed = new Script({
  name: "start-failed",
  file: lua("start-failed"),
  parse: (reply) =>
    z
      .union([
        z.tuple([z.literal("failed")], z.string()).transform(([, ...workers]) => workers),
        z.tuple([z.literal("fenced"), count]).transform(() => "fenced" as const),
      ])
      .parse(reply),
});
const dropIdle = new Script({
  name: "drop-idle",
  file: lua("drop-idle"),
  parse: (reply) => flag.parse(reply),
});

export interface Holder {
  readonly worker: WorkerId;
  /** Differs for each process of that worker. */
  readonly instance: string;
  /** An earlier instance on this machine that is known to be dead: its leases can be taken before they expire. */
  readonly predecessor?: string | undefined;
  /** The highest epoch that its container obeys. After data loss Redis would otherwise start below it. */
  readonly obeyed?: number | undefined;
  /** The host whose disk has the workspaces; undefined if all workers share storage. */
  readonly home?: string | undefined;
}

/** The fencing token of a holder: scripts compare both fields with the lease. */
export interface Holding {
  readonly epoch: number;
  readonly instance: string;
}

/** A sandbox's disk use, as last measured. */
export interface MeasuredBytes {
  /** In its own workspace; undefined if that was not measured. */
  readonly own: number | undefined;
  /** In directories that it shares with other sandboxes of the tenant: `/tools`, or `/agent.NAME`. */
  readonly shared: ReadonlyMap<string, number>;
}

/** As `workspaces.lua` reads it. */
export function measuredText(measured: MeasuredBytes | undefined): string {
  if (!measured) return "";
  return [measured.own ?? "-", ...[...measured.shared].map(([name, bytes]) => `${name}=${bytes}`)].join(" ");
}

interface HeldLease {
  readonly key: SandboxKey;
  readonly epoch: number;
  /** Undefined if nothing was measured yet. */
  readonly bytes?: MeasuredBytes | undefined;
}

/** Redis serves no other call while it renews these. */
const renewedAtOnce = 50;
const pausedCachedMs = 250;

/** Leases of sandboxes: which worker, until when (by Redis' clock), with which epoch. BullMQ's locks decide nothing here. */
export class Leases {
  readonly #redis: Redis;
  /** Paused tenants as last read. Used on a cluster, where the node that has them may be away while another renews a lease. */
  #pausedTenants: ReadonlySet<string> = new Set();
  #pausedReadMs = Number.NEGATIVE_INFINITY;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** How many leases may be renewed in one call: on a cluster one, since another's node may be away. */
  async renewedAtOnce(): Promise<number> {
    return (await isCluster(this.#redis)) ? 1 : renewedAtOnce;
  }

  async take(key: SandboxKey, holder: Holder, lengthMs: number): Promise<TakeResult> {
    const redis = this.#redis;
    // On a cluster each node refuses writes and restarts by itself.
    const writes = (await isCluster(redis)) ? redisKeys.slotWrites(tenantOf(key)) : redisKeys.writes;
    const args = [
      key,
      holder.worker,
      holder.instance,
      lengthMs,
      tenantOf(key),
      holder.home ?? "",
      holder.predecessor ?? "",
      holder.obeyed ?? 0,
      writesRefusedMs,
      ceilingDefaults,
    ];
    const facts = async () => ({
      instance: await readWorkerInstance(redis, holder.worker),
      paused: (await redis.sismember(redisKeys.paused, tenantOf(key))) === 1,
      ceilings: await ceilingFacts(redis, tenantOf(key)),
    });
    const keys = [redisKeys.lease(key), writes];
    return await runInSlot(redis, { key, script: take, keys, args, facts });
  }

  /**
   * Renews one process's leases, with the answers in the same order. One step for Redis, where 50 leases take half a millisecond; on a
   * cluster one step for each lease.
   */
  async renew(held: readonly HeldLease[], instance: string, lengthMs: number): Promise<RenewResult[]> {
    if (!(await isCluster(this.#redis))) return this.#renew(held, instance, lengthMs);
    this.#refreshPaused();
    return Promise.all(held.map((one) => this.#renewInSlot(one, instance, lengthMs)));
  }

  async #renewInSlot(held: HeldLease, instance: string, lengthMs: number): Promise<RenewResult> {
    const [answer] = await this.#renew([held], instance, lengthMs);
    if (answer === undefined) throw new TypeError("no answer to a renewal");
    if (answer.state === "lost") return answer;
    // The next renewal is soon. If the index misses this one, the sweep looks at the sandbox once in vain.
    this.#redis.zadd(redisKeys.leases, "GT", answer.deadlineMs, held.key).catch(() => {});
    const isPaused = answer.state === "renewed" && this.#pausedTenants.has(tenantOf(held.key));
    return isPaused ? { ...answer, state: "paused" } : answer;
  }

  #refreshPaused(): void {
    const nowMs = performance.now();
    if (nowMs - this.#pausedReadMs < pausedCachedMs) return;
    this.#pausedReadMs = nowMs;
    this.#redis.smembers(redisKeys.paused).then(
      (tenants) => {
        this.#pausedTenants = new Set(tenants);
      },
      () => {},
    );
  }

  #renew(held: readonly HeldLease[], instance: string, lengthMs: number): Promise<RenewResult[]> {
    const keys = held.map(({ key }) => redisKeys.lease(key));
    const about = held.flatMap(({ key, epoch, bytes }) => [key, epoch, tenantOf(key), measuredText(bytes)]);
    return renew.run(this.#redis, keys, [instance, lengthMs, ...about]);
  }

  /** `queueKeys`: the lists and sorted sets in which the sandbox's queue keeps jobs that are not finished. */
  async release(
    key: SandboxKey,
    { epoch, instance }: Holding,
    options: {
      readonly onlyIfEmpty: boolean;
      readonly queueKeys: readonly string[];
      /** As in a renewal. */
      readonly bytes?: MeasuredBytes | undefined;
    },
  ): Promise<ReleaseResult> {
    const keys = [redisKeys.lease(key), ...options.queueKeys];
    const args = [key, epoch, instance, options.onlyIfEmpty ? "1" : "0", measuredText(options.bytes)];
    const answer = await release.run(this.#redis, keys, args);
    if (answer.state !== "released") return answer;
    const { state, left, deadlineMs } = answer;
    // This only updates the indexes early. If it is lost, the sweep repairs them.
    if (await isCluster(this.#redis)) {
      unlist.run(this.#redis, [redisKeys.leases], [key, deadlineMs]).catch(() => {});
      if (left === 0) this.dropIdle(key, options.queueKeys).catch(() => {});
    }
    return { state, left };
  }

  /**
   * A page of the pending sandboxes without a live lease, the longest waiting first. `next`: the `after` of the next page; undefined
   * after the last one.
   */
  unheld(page: {
    readonly after: number;
    readonly limit: number;
    readonly olderThanMs: number;
  }): Promise<{ readonly keys: SandboxKey[]; readonly next: number | undefined }> {
    return unheld.run(
      this.#redis,
      [redisKeys.pending, redisKeys.leases, redisKeys.paused],
      [page.after, page.limit, page.olderThanMs],
    );
  }

  /** Sandboxes with work whose lease has expired: their holder died. Each is returned once. */
  lapsed(limit: number): Promise<SandboxKey[]> {
    return lapsed.run(this.#redis, [redisKeys.leases, redisKeys.pending, redisKeys.paused], [limit]);
  }

  /**
   * Records that the holder has the sandbox open, before anything runs in it. From now on only workers of that home take it. False: the
   * holder has lost it, or it has another home.
   */
  started(key: SandboxKey, { epoch, instance }: Holding, home: string | undefined): Promise<boolean> {
    return started.run(this.#redis, [redisKeys.lease(key)], [epoch, instance, home ?? ""]);
  }

  /** Notes that the holder has removed the workspace. False: another process holds the sandbox. */
  destroyed(key: SandboxKey, { epoch, instance }: Holding): Promise<boolean> {
    return destroyed.run(this.#redis, [redisKeys.lease(key)], [epoch, instance, key]);
  }

  /** Removes a destroyed sandbox from all lists. Only for its holder, which has started nothing since. */
  forgetDestroyed(key: SandboxKey, { epoch, instance }: Holding): Promise<boolean> {
    const keys = [redisKeys.lease(key), redisKeys.sandboxesOf(tenantOf(key)), ...unfinishedKeys(key)];
    return runInSlot(this.#redis, { key, script: forgetDestroyed, keys, args: [key, epoch, instance] });
  }

  /** Records that its holder could not start the sandbox. Returns all workers that failed within `countsMs`, this one included. */
  startFailed({ key, epoch }: Noter, worker: WorkerId, countsMs: number): Promise<string[] | "fenced"> {
    return startFailed.run(this.#redis, [redisKeys.lease(key)], [epoch, worker, countsMs]);
  }

  /** Stops offering a sandbox that has an empty queue and no holder. False: it has jobs or a holder. */
  async dropIdle(key: SandboxKey, queueKeys: readonly string[]): Promise<boolean> {
    const isIdle = () => dropIdle.run(this.#redis, [redisKeys.lease(key), ...queueKeys], [key]);
    if (!(await isIdle())) return false;
    if (!(await isCluster(this.#redis))) return true;
    await this.#redis.zrem(redisKeys.pending, key);
    // A job may have come in between. If this process dies here, the audit repairs it.
    if (await isIdle()) return true;
    await this.#redis.zadd(redisKeys.pending, "NX", await redisNow(this.#redis), key);
    return false;
  }

  /** Whether it has, or may have, work. On a cluster the index may say so a moment later, and an offer would be dropped meanwhile. */
  async isPending(key: SandboxKey): Promise<boolean> {
    if (await isCluster(this.#redis)) return (await this.#redis.exists(...unfinishedKeys(key))) > 0;
    return (await this.#redis.zscore(redisKeys.pending, key)) !== null;
  }

  /** Whether it has work and no holder. A worker asks after it gave the sandbox up or removed its offer. */
  async isUnheld(key: SandboxKey): Promise<boolean> {
    const [pending, held, paused] = await Promise.all([
      this.isPending(key),
      this.#isHeld(key),
      this.#redis.sismember(redisKeys.paused, tenantOf(key)),
    ]);
    return pending && !held && paused === 0;
  }

  /** On a cluster the index may get a lease after it was given up, and then has it until its deadline. */
  async #isHeld(key: SandboxKey): Promise<boolean> {
    const redis = this.#redis;
    if (!(await isCluster(redis))) return (await redis.zscore(redisKeys.leases, key)) !== null;
    const [{ worker, deadlineMs }, now] = await Promise.all([readLease(redis, key), redisNow(redis)]);
    return worker !== undefined && deadlineMs > now;
  }

  /** How many sandboxes workers hold, by tenant. */
  async heldCounts(tenants: readonly TenantId[]): Promise<Map<TenantId, number>> {
    const counts = tenants.map(async (tenant) => {
      const held = await this.#redis.zrange(redisKeys.heldOf(tenant), "0", "-1");
      if (held.length === 0) return [tenant, 0] as const;
      // The tenant's set still has the sandboxes of dead workers.
      const deadlines = await this.#redis.zmscore(redisKeys.leases, ...held);
      return [tenant, deadlines.filter((deadline) => deadline !== null).length] as const;
    });
    return new Map(await Promise.all(counts));
  }

  /** Where a sandbox is offered: its pool, and its home host where it has one. */
  async offerTarget(key: SandboxKey): Promise<OfferTarget> {
    const { pool, home } = await readLease(this.#redis, key);
    return { pool, home };
  }

  /** Records why the sandbox's jobs wait; undefined removes the note. Does nothing once another process has taken the sandbox. */
  async note(noter: Noter, trouble: string | undefined): Promise<void> {
    await noteTrouble(this.#redis, noter, trouble);
  }

  /** As `note`. */
  async noteSetUp(noter: Noter, report: SetUpReport): Promise<void> {
    await noteSetUp(this.#redis, noter, report);
  }

  /** No worker takes sandboxes of a paused tenant, and their holders give them up. */
  async pause(tenant: TenantId): Promise<void> {
    await this.#redis.sadd(redisKeys.paused, tenant);
  }

  async resume(tenant: TenantId): Promise<void> {
    await this.#redis.srem(redisKeys.paused, tenant);
  }
}
