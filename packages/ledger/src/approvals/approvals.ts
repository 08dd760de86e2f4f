import { redisKeys, type SandboxKey, sandboxKey, tenantOf } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";

/** What an administrator sees of a job that waits for an approval. */
export interface Approval {
  readonly jobId: string;
  readonly tenant: string;
  readonly sandbox: SandboxKey;
  readonly session: string;
  readonly agent?: string | undefined;
  readonly kind: string;
  /** A preview: its request, shortened, without its environment and the contents of files. */
  readonly preview: string;
  readonly askedAtMs: number;
  /** Then it ends as refused. */
  readonly expiresAtMs: number;
}

export type ApprovalAsked = Omit<Approval, "askedAtMs" | "expiresAtMs"> & {
  /** A digest of the custom tools that run in it: an approval of another command does not count. Empty without any. */
  readonly digest: string;
};

/** `asked`: it waits since now. `leftMs`: how long it may go on waiting. */
export type ApprovalState =
  | { readonly state: "asked" | "waiting"; readonly leftMs: number }
  | { readonly state: "approved" | "expired" }
  | { readonly state: "refused"; readonly reason: string };

export type Decided = "decided" | "unknown" | "approved" | "refused" | "expired";

/** How long a decision is remembered: retries of an approved job do not ask again. */
const keptMs = 7 * 86_400_000;

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
  parse: (reply) => z.enum(["decided", "unknown", "approved", "refused", "expired"]).parse(reply),
});

const record = z.object({
  state: z.enum(["waiting", "approved", "refused", "expired"]),
  askedAtMs: z.coerce.number(),
  expiresAtMs: z.coerce.number(),
  what: z.string(),
});

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
 */
export class Approvals {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** How it was decided about the job. The first call makes it wait. */
  async ask(what: ApprovalAsked, expiresMs: number): Promise<ApprovalState> {
    const { jobId, sandbox, digest, ...rest } = what;
    const owner = tenantOf(sandbox);
    const text = JSON.stringify({ ...rest, sandbox });
    // Before, in case this process dies; and after, in case a reader of the list took the owner off in between.
    await this.#redis.sadd(redisKeys.approvalOwners, owner);
    const answer = await ask.run(this.#redis, keysOf(sandbox, jobId), [
      jobId,
      text,
      expiresMs,
      keptMs,
      digest,
    ]);
    if (answer.state === "asked") await this.#redis.sadd(redisKeys.approvalOwners, owner);
    return answer;
  }

  async decide(
    sandbox: SandboxKey,
    jobId: string,
    decision: "approved" | "refused",
    { by, reason }: { readonly by: string; readonly reason: string },
  ): Promise<Decided> {
    return await decide.run(this.#redis, keysOf(sandbox, jobId), [jobId, decision, by, reason, keptMs]);
  }

  /** Whether an administrator has decided, or its time is over; undefined: no approval was needed. */
  async isWaiting(sandbox: SandboxKey, jobId: string): Promise<boolean | undefined> {
    const state = await this.#redis.hget(redisKeys.approval(sandbox, jobId), "state");
    return state === null ? undefined : state === "waiting";
  }

  /** The jobs that wait, the first to expire first. */
  async list(limit: number, owner?: string): Promise<Approval[]> {
    const owners = owner === undefined ? await this.#redis.smembers(redisKeys.approvalOwners) : [owner];
    const found: Approval[] = [];
    for (const one of owners) {
      const ids = await this.#redis.zrange(redisKeys.approvalsOf(one), 0, String(limit - 1));
      if (ids.length === 0 && owner === undefined) await this.#forgetOwner(one);
      for (const jobId of ids) {
        const approval = await this.#read(one, jobId);
        if (approval) found.push(approval);
      }
    }
    return found.sort((a, b) => a.expiresAtMs - b.expiresAtMs).slice(0, limit);
  }

  async #forgetOwner(owner: string): Promise<void> {
    await this.#redis.srem(redisKeys.approvalOwners, owner);
    if ((await this.#redis.zcard(redisKeys.approvalsOf(owner))) > 0)
      await this.#redis.sadd(redisKeys.approvalOwners, owner);
  }

  /** Undefined: it is no longer waiting, or its record has expired. */
  async #read(owner: string, jobId: string): Promise<Approval | undefined> {
    const key = sandboxKey.parse(owner);
    const fields = await this.#redis.hgetall(redisKeys.approval(key, jobId));
    const known = record.safeParse(fields).data;
    if (known?.state === "waiting") {
      const { askedAtMs, expiresAtMs, what } = known;
      return { jobId, askedAtMs, expiresAtMs, ...asked.parse(JSON.parse(what)) };
    }
    await this.#redis.zrem(redisKeys.approvalsOf(owner), jobId);
    return undefined;
  }
}

function keysOf(sandbox: SandboxKey, jobId: string): string[] {
  return [redisKeys.approval(sandbox, jobId), redisKeys.approvalsOf(tenantOf(sandbox))];
}
