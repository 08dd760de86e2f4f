import { JobEvents } from "@berth/ledger";
import { type JobResult, redisKeys, type SandboxKey, sandboxKey, type TenantId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { shownId, storedIds } from "../keys/own-ids.ts";
import { mayTouch, type Principal } from "../keys/principal.ts";
import type { JobView } from "../schemas/job.ts";
import { resultFor } from "./told-to.ts";

const stored = z.object({
  key: z.string().pipe(sandboxKey),
  tenant: z.string(),
  session: z.string(),
  kind: z.string(),
  at: z.coerce.number(),
  /** The last attempt that was added to its sandbox's queue; 0 while the first waits for its time. */
  added: z.coerce.number().default(0),
});

const pageSize = 200;
const lookedAtMost = 10_000;

export interface KnownJob {
  readonly id: string;
  /** The id as the caller knows it. */
  readonly shownId: string;
  readonly key: SandboxKey;
  readonly tenant: string;
  readonly session: string;
  readonly kind: string;
  readonly acceptedAtMs: number;
  /** Its last attempt that was added to its sandbox's queue; 0 for none yet. */
  readonly added: number;
}

/** Jobs by their id, for those who may see them. To anybody else a job does not exist. */
export class JobDesk {
  readonly #redis: Redis;
  readonly #events: JobEvents;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#events = new JobEvents(redis);
  }

  async find(id: string, principal: Principal): Promise<KnownJob> {
    const known = await Promise.all(storedIds(principal, id).map((one) => this.#read(one, principal)));
    const job = known.find((one) => one !== undefined && mayTouch(principal, one.tenant));
    if (!job) {
      throw new Problem(
        "not-found",
        principal.role === "admin"
          ? "no job of that id is known; one that was submitted with a tenant key is <tenant>.<id>, and ids are remembered for a day after the end"
          : "no job of that id is known; ids are remembered for a day after the end",
      );
    }
    return job;
  }

  /** Jobs that are not over, the oldest first; of one tenant, or of all. Looks at the oldest ten thousand. */
  async unfinished(principal: Principal, tenant: TenantId | undefined, limit: number): Promise<JobView[]> {
    const found: JobView[] = [];
    for (let from = 0; from < lookedAtMost && found.length < limit; from += pageSize) {
      const ids = await this.#redis.zrange(redisKeys.unfinished, String(from), String(from + pageSize - 1));
      const known = await Promise.all(ids.map((id) => this.#read(id, principal)));
      const own = known.filter((job) => job !== undefined && (tenant === undefined || job.tenant === tenant));
      found.push(...(await Promise.all(own.map((job) => this.view(job as KnownJob, principal)))));
      if (ids.length < pageSize) break;
    }
    return found.slice(0, limit);
  }

  /** Nothing will ever follow this event. */
  async isOverAfter({ key, id }: KnownJob, after: string): Promise<boolean> {
    const progress = await this.#events.progress(key, id);
    return progress.state === "finished" && (await this.#events.read(key, id, after, 1)).length === 0;
  }

  /** The job as this caller may see it. `result`: its end, where the caller's request has it already. */
  async view(
    { key, added, id, shownId, ...known }: KnownJob,
    principal: Principal,
    result?: JobResult,
  ): Promise<JobView> {
    const job = { ...known, id: shownId, sandbox: key };
    const finished = (end: JobResult): JobView => ({
      ...job,
      state: "finished",
      result: resultFor(principal, end),
    });
    if (result) return finished(result);
    const progress = await this.#events.progress(key, id);
    switch (progress.state) {
      case "not-started":
        return { ...job, state: added > (progress.retried ?? 0) ? "waiting" : "scheduled" };
      case "started":
        return { ...job, state: "running" };
      case "finished":
        return finished(progress.result);
    }
  }

  async #read(id: string, principal: Principal): Promise<KnownJob | undefined> {
    const parsed = stored.safeParse(await this.#redis.hgetall(redisKeys.job(id)));
    if (!parsed.success) return undefined;
    const { at, ...job } = parsed.data;
    return { id, shownId: shownId(principal, id), ...job, acceptedAtMs: at };
  }
}
