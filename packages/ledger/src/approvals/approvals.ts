import { redisKeys, type SandboxKey, sandboxKey, type TenantId, tenantOf } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import type { FieldOf } from "../key-record.ts";
import { fairShare } from "./fair-share.ts";
import type { approvalRecords } from "./records.ts";

/** What an administrator sees of a job that waits for an approval. */
export interface Approval {
  readonly jobId: string;
  readonly tenant: string;
  readonly sandbox: SandboxKey;
  readonly session: string;
  readonly agent?: string | undefined;
  readonly kind: string;
  /** Everything that the job would run, its secrets masked. A cut preview ends with how much is missing. */
  readonly preview: string;
  /** Digest of what is shown here. An approval names it, and does not count if the job would run something else. */
  readonly digest: string;
  readonly askedAtMs: number;
  /** If no administrator decides before, the job ends as refused. */
  readonly expiresAtMs: number;
}

export type WholeApproval = Approval & {
  /** As the preview, without its bound. */
  readonly whole: string;
};

export type ApprovalAsked = Omit<WholeApproval, "askedAtMs" | "expiresAtMs">;

/** `asked`: it waits since now. `leftMs`: how long it may go on waiting. */
export type ApprovalState =
  | { readonly state: "asked" | "waiting"; readonly leftMs: number }
  | { readonly state: "approved" | "expired" }
  | { readonly state: "refused"; readonly reason: string };

export type Decided = "decided" | "unknown" | "changed" | "approved" | "refused" | "expired";

export interface Decision {
  readonly decision: "approved" | "refused";
  /** Digest of what the administrator saw. Only a refusal may leave it out. */
  readonly digest: string | undefined;
  readonly by: string;
  readonly reason: string;
}

export interface ApprovalsListed {
  readonly limit: number;
  /** Absent: all tenants. */
  readonly tenant?: TenantId | undefined;
  /** Whose sandboxes the jobs run in; absent: all. */
  readonly owners?: readonly string[] | undefined;
}

/** How long a decision is remembered: retries of an approved job do not ask again. The job's end forgets it sooner. */
const keptMs = 7 * 86_400_000;
/** How many of one owner are read at once. */
const pageSize = 500;

const ask = new Script({
  name: "approval-ask",
  file: new URL("../../lua/approval-ask.lua", import.meta.url),
  parse: (reply): ApprovalState => {
    const [state, detail] = z
      .tuple([z.enum(["asked", "waiting", "approved", "refused", "expired"])])
      .rest(z.union([z.string(), z.number()]))
      .parse(reply);
    if (state === "asked" || state === "waiting") return { state, leftMs: Number(detail) };
    return state === "refused" ? { state, reason: String(detail ?? "") } : { state };
  },
});

const decide = new Script({
  name: "approval-decide",
  file: new URL("../../lua/approval-decide.lua", import.meta.url),
  parse: (reply) => z.enum(["decided", "unknown", "changed", "approved", "refused", "expired"]).parse(reply),
});

const record = z.object({
  state: z.enum(["waiting", "approved", "refused", "expired"]),
  askedAtMs: z.coerce.number(),
  expiresAtMs: z.coerce.number(),
  what: z.string(),
  digest: z.string(),
});
const recordFields = [
  "state",
  "askedAtMs",
  "expiresAtMs",
  "what",
  "digest",
] as const satisfies readonly FieldOf<typeof approvalRecords.approval>[];

const asked = z.object({
  tenant: z.string(),
  sandbox: z.string().pipe(sandboxKey),
  session: z.string(),
  agent: z.string().optional(),
  kind: z.string(),
  preview: z.string(),
});

/**
 * Jobs that may not run before an administrator approves them.
 *
 *   asked ──▶ waiting ──approve──▶ approved: the job runs
 *                ├──refuse──▶ refused: it ends as refused, with the reason
 *                └──its time is over──▶ expired: it ends as refused
 *
 * The job's end removes the record from each of these states.
 */
export class Approvals {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Returns the decision about the job. The first call, and a call with another digest, makes the job wait for one. */
  async ask(what: ApprovalAsked, expiresMs: number): Promise<ApprovalState> {
    const { jobId, sandbox, digest, whole, ...rest } = what;
    const owner = tenantOf(sandbox);
    const text = JSON.stringify({ ...rest, sandbox });
    // Added before, in case this process dies; and after, in case a reader of the list removed the owner in between.
    await this.#redis.sadd(redisKeys.approvalOwners, owner);
    const keys = [...keysOf(sandbox, jobId), redisKeys.job(sandbox, jobId)];
    const answer = await ask.run(this.#redis, keys, [jobId, text, whole, expiresMs, keptMs, digest]);
    if (answer.state === "asked") await this.#redis.sadd(redisKeys.approvalOwners, owner);
    return answer;
  }

  async decide(
    sandbox: SandboxKey,
    jobId: string,
    { decision, digest = "", by, reason }: Decision,
  ): Promise<Decided> {
    const args = [jobId, decision, by, reason, keptMs, digest];
    return await decide.run(this.#redis, keysOf(sandbox, jobId), args);
  }

  /** False: an administrator has decided, or the time is over. Undefined: no approval was asked for. */
  async isWaiting(sandbox: SandboxKey, jobId: string): Promise<boolean | undefined> {
    const state = await this.#redis.hget(redisKeys.approval(sandbox, jobId), "state");
    return state === null ? undefined : state === "waiting";
  }

  /** Undefined: it does not wait. */
  async find(sandbox: SandboxKey, jobId: string): Promise<WholeApproval | undefined> {
    const approval = await this.#read(tenantOf(sandbox), jobId);
    const whole = approval && (await this.#redis.hget(redisKeys.approval(sandbox, jobId), "whole"));
    return typeof whole === "string" && approval ? { ...approval, whole } : undefined;
  }

  /** The jobs that wait, the first to expire first. Beyond the limit tenants take turns, so that one with many jobs hides no other's. */
  async list({ limit, tenant, owners }: ApprovalsListed): Promise<Approval[]> {
    const of = owners ?? (await this.#redis.smembers(redisKeys.approvalOwners));
    const found: Approval[] = [];
    for (const owner of of) found.push(...(await this.#of(owner, limit, tenant)));
    return fairShare(found, limit);
  }

  /** At most `limit` of each tenant's. */
  async #of(owner: string, limit: number, tenant: TenantId | undefined): Promise<Approval[]> {
    const found: Approval[] = [];
    const counts = new Map<string, number>();
    let isAnyGone = false;
    for (let from = 0; ; from += pageSize) {
      const ids = await this.#redis.zrange(redisKeys.approvalsOf(owner), from, String(from + pageSize - 1));
      if (ids.length === 0 && from === 0) await this.#forgetOwner(owner);
      const page = await Promise.all(ids.map((jobId) => this.#read(owner, jobId)));
      for (const approval of page) {
        isAnyGone ||= approval === undefined;
        if (!approval || (tenant !== undefined && approval.tenant !== tenant)) continue;
        const count = (counts.get(approval.tenant) ?? 0) + 1;
        counts.set(approval.tenant, count);
        if (count <= limit) found.push(approval);
      }
      // All sandboxes of an owner belong to one tenant, except the one that all tenants share.
      const isFull = found.length >= limit && (tenant !== undefined || counts.has(owner));
      if (ids.length < pageSize || isFull) break;
    }
    // Only those whose records have expired: a job that was decided about meanwhile may wait again by now.
    if (isAnyGone)
      await this.#redis.zremrangebyscore(redisKeys.approvalsOf(owner), "-inf", Date.now() - keptMs);
    return found;
  }

  async #forgetOwner(owner: string): Promise<void> {
    await this.#redis.srem(redisKeys.approvalOwners, owner);
    if ((await this.#redis.zcard(redisKeys.approvalsOf(owner))) > 0)
      await this.#redis.sadd(redisKeys.approvalOwners, owner);
  }

  /** Undefined: it is no longer waiting, or its record has expired. */
  async #read(owner: string, jobId: string): Promise<Approval | undefined> {
    const key = sandboxKey.parse(owner);
    const values = await this.#redis.hmget(redisKeys.approval(key, jobId), ...recordFields);
    const fields = Object.fromEntries(recordFields.map((name, index) => [name, values[index] ?? undefined]));
    const known = record.safeParse(fields).data;
    if (known?.state !== "waiting") return undefined;
    const { askedAtMs, expiresAtMs, what, digest } = known;
    return { jobId, digest, askedAtMs, expiresAtMs, ...asked.parse(JSON.parse(what)) };
  }
}

function keysOf(sandbox: SandboxKey, jobId: string): string[] {
  return [redisKeys.approval(sandbox, jobId), redisKeys.approvalsOf(tenantOf(sandbox))];
}
