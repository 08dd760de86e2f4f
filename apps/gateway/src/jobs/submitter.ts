import { acceptForLater, Enqueuer, Schedule, Staging, type StreamReader } from "@berth/ledger";
import { isFault, type Job, type JobResult, sandboxKeyOf } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { Tracing } from "@berth/service";
import type { Draft } from "./submission.ts";

/** Two requests with one id at the same moment both add it, and one of them is told. The job's own stream is read after this long. */
const listenAfterMs = 1_000;

export interface SubmitOptions {
  /** The request's only job: then handing it on has a span of its own. A span for each of thousands would bury the rest. */
  readonly alone?: boolean;
}

/** How a job ended; undefined when the signal came first. */
export type Outlook = (until: AbortSignal) => Promise<JobResult | undefined>;

/** Hands jobs to the fleet, now or when they are due. */
export class Submitter {
  readonly #enqueuer: Enqueuer;
  readonly #schedule: Schedule;
  readonly #reader: StreamReader;
  readonly #tracing: Tracing | undefined;

  constructor(redis: Redis, reader: StreamReader, tracing?: Tracing) {
    this.#enqueuer = new Enqueuer(redis);
    this.#schedule = new Schedule(redis, new Staging(redis));
    this.#reader = reader;
    this.#tracing = tracing;
  }

  /** Nobody is told of its end. `known`: it was submitted before. */
  async submit(draft: Draft, { alone = false }: SubmitOptions = {}): Promise<"added" | "known"> {
    const { job, dueAtMs } = draft;
    const hand = (one: Job) =>
      dueAtMs === undefined ? this.#enqueuer.enqueue(one) : acceptForLater(this.#schedule, one, dueAtMs);
    return this.#tracing && alone ? handTraced(this.#tracing, job, hand) : hand(job);
  }

  /** This gateway is told of its end. Whoever asks for that must ask until an end or a signal: it is remembered until then. */
  async submitToWait(draft: Draft, how: SubmitOptions = {}): Promise<Outlook> {
    const reader = this.#reader;
    const { job } = draft;
    const told = reader.expect(job.id);
    try {
      const said = await this.submit({ ...draft, job: { ...job, inbox: reader.name } }, how);
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

/** The job carries the span of its handing on, so that whoever runs it continues there. */
async function handTraced<T extends string>(
  tracing: Tracing,
  job: Job,
  hand: (job: Job) => Promise<T>,
): Promise<T> {
  const { kind } = job.request;
  const span = tracing.begin({
    name: `berth.enqueue ${kind}`,
    kind: "producer",
    parent: job.trace,
    attributes: { "berth.job.id": job.id, "berth.kind": kind, "berth.tenant": job.tenant },
  });
  try {
    const said = await hand({ ...job, trace: span.context });
    span.end({ attributes: { "berth.enqueued": said } });
    return said;
  } catch (error) {
    span.end({ error: isFault(error) ? error.code : "internal" });
    throw error;
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
