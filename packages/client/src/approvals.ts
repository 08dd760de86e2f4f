import { type Approval, checked, Approvals as Records, readJobRecord, type Schedule } from "@berth/ledger";
import { Fault, tenantId } from "@berth/protocol";
import type { Redis } from "@berth/redis";

export interface DecideOptions {
  /** Who, for the record. */
  readonly by?: string;
  /** A tenant reads it with its job's end. */
  readonly reason?: string;
}

const mostListed = 1_000;

/** Jobs that a rule of their profile lets run only after an administrator has approved them; docs/policy.md. */
export class Approvals {
  readonly #redis: Redis;
  readonly #records: Records;
  readonly #schedule: Pick<Schedule, "hurry">;

  /** @internal Its users get it from a `Berth`. */
  constructor(redis: Redis, schedule: Pick<Schedule, "hurry">) {
    this.#redis = redis;
    this.#records = new Records(redis);
    this.#schedule = schedule;
  }

  /** What waits, the first to expire first; of one tenant or of all. */
  async list({ tenant, limit = 100 }: { tenant?: string; limit?: number } = {}): Promise<Approval[]> {
    const of = tenant === undefined ? undefined : checked(tenantId, tenant, "the tenant");
    const bounded = Math.min(limit, mostListed);
    // Those of the shared sandbox are listed under no tenant.
    const all = await this.#records.list(tenant === undefined ? bounded : mostListed);
    return all.filter((one) => of === undefined || one.tenant === of).slice(0, bounded);
  }

  /** The job runs. Throws `not-waiting-for-approval` unless it waits for one. */
  approve(jobId: string, options: DecideOptions = {}): Promise<void> {
    return this.#decide(jobId, "approved", options);
  }

  /** The job ends as refused. */
  refuse(jobId: string, options: DecideOptions = {}): Promise<void> {
    return this.#decide(jobId, "refused", options);
  }

  async #decide(
    jobId: string,
    decision: "approved" | "refused",
    { by = "client", reason = "" }: DecideOptions,
  ): Promise<void> {
    const job = await readJobRecord(this.#redis, jobId);
    const shown = { by: by.slice(0, 200), reason: reason.slice(0, 1_000) };
    const answer = job ? await this.#records.decide(job.key, jobId, decision, shown) : "unknown";
    // Said again after a lost answer: it is as it was wanted.
    if (!job || (answer !== "decided" && answer !== decision))
      throw new Fault("not-waiting-for-approval", { jobId, state: answer });
    await this.#schedule.hurry(job.key, jobId);
  }
}
