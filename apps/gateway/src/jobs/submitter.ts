import { Enqueuer, type StreamReader } from "@berth/client";
import { type JobResult, sandboxKeyOf } from "@berth/protocol";
import { Schedule } from "@berth/queue";
import type { Redis } from "@berth/redis";
import { Staging } from "@berth/streams";
import type { Draft } from "./submission.ts";

/** Two requests with one id at the same moment both add it, and one of them is told. The job's own stream is read after this long. */
const listenAfterMs = 1_000;

/** How a job ended; undefined when the signal came first. */
export type Outlook = (until: AbortSignal) => Promise<JobResult | undefined>;

/** Hands jobs to the fleet, now or when they are due. */
export class Submitter {
  readonly #enqueuer: Enqueuer;
  readonly #schedule: Schedule;
  readonly #reader: StreamReader;

  constructor(redis: Redis, reader: StreamReader) {
    this.#enqueuer = new Enqueuer(redis);
    this.#schedule = new Schedule(redis, new Staging(redis));
    this.#reader = reader;
  }

  /** Nobody is told of its end. `known`: it was submitted before. */
  async submit({ job, dueAtMs, newId }: Draft): Promise<"added" | "known"> {
    return dueAtMs === undefined
      ? this.#enqueuer.enqueue(job, { newId })
      : this.#schedule.accept(job, dueAtMs);
  }

  /** This gateway is told of its end. Whoever asks for that must ask until an end or a signal: it is remembered until then. */
  async submitToWait(draft: Draft): Promise<Outlook> {
    const reader = this.#reader;
    const { job } = draft;
    const told = reader.expect(job.id);
    try {
      const said = await this.submit({ ...draft, job: { ...job, inbox: reader.name } });
      const options = { told, listenAfterMs: said === "known" ? 0 : listenAfterMs };
      return (signal) => ended(reader.result(sandboxKeyOf(job), job.id, { ...options, signal }), signal);
    } catch (error) {
      told.forget();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#enqueuer.close();
    await this.#schedule.close();
  }
}

/** Patience that ran out is not a failure. */
export async function ended(result: Promise<JobResult>, until: AbortSignal): Promise<JobResult | undefined> {
  try {
    return await result;
  } catch (error) {
    if (until.aborted) return undefined;
    throw error;
  }
}
