import {
  type Approval,
  checked,
  Approvals as Records,
  readJobRecord,
  type Schedule,
  type WholeApproval,
} from "@berth/ledger";
import { Fault, sharedOwner, tenantId } from "@berth/protocol";
import type { Redis } from "@berth/redis";

export interface DecideOptions {
  /** Who decides, for the record. */
  readonly by?: string;
  /** Shown to the tenant in its job's outcome. */
  readonly reason?: string;
}

const mostListed = 1_000;

/** Jobs that a profile's rule holds back until an administrator approves them; docs/policy.md. */
export class Approvals {
  readonly #redis: Redis;
  readonly #records: Records;
  readonly #schedule: Pick<Schedule, "hurry">;

  /** @internal Use `berth.approvals`. */
  constructor(redis: Redis, schedule: Pick<Schedule, "hurry">) {
    this.#redis = redis;
    this.#records = new Records(redis);
    this.#schedule = schedule;
  }

  /** Jobs that wait for an approval, soonest expiry first; of one tenant or of all. */
  async list({ tenant, limit = 100 }: { tenant?: string; limit?: number } = {}): Promise<Approval[]> {
    const bounded = Math.min(limit, mostListed);
    if (tenant === undefined) return await this.#records.list({ limit: bounded });
    const of = checked(tenantId, tenant, "the tenant");
    return await this.#records.list({ limit: bounded, tenant: of, owners: [of, sharedOwner] });
  }

  /** One waiting job, with up to 256 KiB of what it would run. Undefined: it waits for no approval. */
  async get(jobId: string): Promise<WholeApproval | undefined> {
    const job = await readJobRecord(this.#redis, jobId);
    return job && (await this.#records.find(job.key, jobId));
  }

  /**
   * Lets the job run. `digest` comes from `list` or `get`. Throws `not-waiting-for-approval` unless the job waits for an approval with
   * that digest.
   */
  approve({ jobId, digest }: Pick<Approval, "jobId" | "digest">, options: DecideOptions = {}): Promise<void> {
    return this.#decide(jobId, "approved", digest, options);
  }

  /** Ends the job as refused. With a digest, only if the job would run what that digest is of. */
  refuse(
    { jobId, digest }: Pick<Approval, "jobId"> & Partial<Pick<Approval, "digest">>,
    options: DecideOptions = {},
  ): Promise<void> {
    return this.#decide(jobId, "refused", digest, options);
  }

  async #decide(
    jobId: string,
    decision: "approved" | "refused",
    digest: string | undefined,
    { by = "client", reason = "" }: DecideOptions,
  ): Promise<void> {
    const job = await readJobRecord(this.#redis, jobId);
    const what = { decision, digest, by: by.slice(0, 200), reason: reason.slice(0, 1_000) };
    const answer = job ? await this.#records.decide(job.key, jobId, what) : "unknown";
    // A repeated call after a lost answer: the decision was made already.
    if (!job || (answer !== "decided" && answer !== decision))
      throw new Fault("not-waiting-for-approval", { jobId, state: answer });
    await this.#schedule.hurry(job.key, jobId);
  }
}
