import type { Berth, EnqueuedJob } from "@berth/client";
import type { JobResult, SandboxKey } from "@berth/protocol";
import type { HistoryJob } from "./history.ts";
import type { PlannedJob } from "./load.ts";

/** Hands planned jobs to a fleet and keeps what the history checker will ask for, in the order of handing over. */
export class LoadRun {
  readonly #berth: Berth;
  readonly #handed: { readonly planned: PlannedJob; readonly accepted: Promise<EnqueuedJob> }[] = [];

  constructor(berth: Berth) {
    this.#berth = berth;
  }

  submit(planned: PlannedJob): Promise<EnqueuedJob> {
    const accepted = this.#berth.submit(planned.order).enqueued();
    accepted.catch(() => {});
    this.#handed.push({ planned, accepted });
    return accepted;
  }

  /** What the fleet accepted. A job whose handing over failed was promised nothing. */
  async jobs(): Promise<HistoryJob[]> {
    const settled = await Promise.allSettled(this.#handed.map(({ accepted }) => accepted));
    return settled.flatMap((one, index) => {
      const planned = this.#handed[index]?.planned;
      if (one.status === "rejected" || !planned) return [];
      const { id, key } = one.value;
      return [historyJob(planned, id, key)];
    });
  }

  /** The ends of everything that was accepted, in order. Throws with the ids of those that did not end in time. */
  async results(withinMs = 60_000): Promise<JobResult[]> {
    const settled = await Promise.allSettled(this.#handed.map(({ accepted }) => accepted));
    const accepted = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const unfinished = new Map(accepted.map(({ id, key }) => [id, key]));
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      const named = [...unfinished].slice(0, 5).map(([id, key]) => `${id} of ${key}`);
      late.reject(new Error(`${unfinished.size} jobs have no end after ${withinMs} ms: ${named.join(", ")}`));
    }, withinMs);
    const all = accepted.map(async ({ id, result }) => {
      const ended = await result;
      unfinished.delete(id);
      return ended;
    });
    return Promise.race([Promise.all(all), late.promise]).finally(() => clearTimeout(timer));
  }
}

/** Until its command has said something. */
export async function running(job: EnqueuedJob): Promise<void> {
  for await (const event of job.events()) if (event.type === "stdout") return;
  throw new Error("it ended without a word");
}

/** A planned job that was accepted under this id. */
export function historyJob(planned: PlannedJob, id: string, key: SandboxKey): HistoryJob {
  const { repeatable, mark, unordered, order } = planned;
  return { id, key, session: order.session ?? "main", repeatable, mark, unordered };
}
