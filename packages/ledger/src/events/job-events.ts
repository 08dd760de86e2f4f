import {
  type ArtifactRef,
  type JobResult,
  type Labels,
  type Outcome,
  redisKeys,
  type SandboxKey,
  type WrittenFile,
  withText,
} from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { readAttempts } from "../jobs/job-record.ts";
import { boardArguments, endedEntry, retriedEntry, retryingMark } from "../queues/board-entry.ts";
import {
  type Beginning,
  type Begun,
  type Ending,
  Exchanges,
  inboxKey,
  keptMs,
  type Published,
} from "../queues/exchange.ts";
import {
  completedKey,
  entryKey,
  entryPrefix,
  failedKey,
  finishedKept,
  queuedId,
} from "../queues/queue-layout.ts";
import { runInSlot } from "../slots.ts";
import { type UsedByAttempt, usedArgument } from "../usage/usage-record.ts";
import { excerptBytes, excerptOf } from "./excerpt.ts";

/** A cancelled job's staged request stays this long, for a worker that has just taken the job. */
export const stagedKeptMs = 60_000;
/** Redis walks a list to remove an entry. In a longer list the entry stays; it is marked, and a holder drops it. */
export const walkedMost = 10_000;

const reply = z.union([
  z.tuple([z.literal(["published", "finished-before"])]).transform(([word]) => word),
  z.tuple([z.literal("fenced"), z.number()]).transform(([word]) => word),
]);
const publish = new Script({
  name: "publish",
  file: new URL("../../lua/publish.lua", import.meta.url),
  parse: (value) => reply.parse(value),
});

const unbegin = new Script({
  name: "unbegin",
  file: new URL("../../lua/unbegin.lua", import.meta.url),
  parse: (value) => z.literal([0, 1]).parse(value) === 1,
});

const noteCancellation = new Script({
  name: "request-cancellation",
  file: new URL("../../lua/request-cancellation.lua", import.meta.url),
  parse: (value) => z.literal([0, 1]).parse(value) === 1,
});

const cancelReply = z.literal(["ended", "finished-before", "begun"]);
const cancel = new Script({
  name: "cancel",
  file: new URL("../../lua/cancel.lua", import.meta.url),
  parse: (value) => cancelReply.parse(value),
});

export type Cancelled = z.infer<typeof cancelReply>;

/** A job that waits: in its sandbox's queue, or for its time. */
export interface WaitingJob {
  readonly key: SandboxKey;
  readonly jobId: string;
  readonly attempt: number;
  readonly inbox: string | undefined;
  readonly labels?: Labels | undefined;
  readonly queue: QueueKeys;
  /** When the job is due. Its end is remembered past that time, so that a worker that passes it on finds the end. */
  readonly dueAtMs?: number | undefined;
}

/** Where one attempt of a job is kept in its sandbox's queue. */
export interface QueueKeys {
  readonly queuedId: string;
  /** Hash: the entry itself. */
  readonly entryKey: string;
  /** Lists and sorted sets of unfinished jobs. */
  readonly unfinishedKeys: readonly string[];
}

export interface Publication {
  readonly key: SandboxKey;
  readonly epoch: number;
  /** The fencing token of the worker that holds the sandbox. */
  readonly instance: string;
  readonly jobId: string;
  /** The client whose inbox gets the end. */
  readonly inbox?: string | undefined;
  /** Names this publication: a repetition after a lost answer adds nothing. */
  readonly part?: string | undefined;
  /** Present if this is the attempt's end. */
  readonly ends?: EndingAttempt | undefined;
}

/** An attempt that ends. */
export interface EndingAttempt {
  readonly attempt: number;
  /** It leaves its queue in the same step. Otherwise its holder completes it later. */
  readonly leaves: boolean;
}

/** Where a job is in its sandbox's line. */
export interface LinePosition {
  readonly queuedId: string;
  /** Jobs that were taken before it, as far as the holder that begins it knows. */
  readonly before: readonly string[];
  /** By Redis' time: until then the holder can be sure that it holds the sandbox. */
  readonly notAfterMs: number;
}

export type JobEvent =
  | {
      readonly type: "started";
      readonly worker: string;
      readonly epoch: number;
      readonly atMs: number;
      readonly attempt: number;
    }
  | { readonly type: "stdout" | "stderr"; readonly bytes: Buffer }
  | { readonly type: "artifact"; readonly artifact: ArtifactRef }
  /** A file was written completely. */
  | { readonly type: "file"; readonly file: WrittenFile }
  | {
      /** An attempt ended, and another follows. */
      readonly type: "retrying";
      readonly attempt: number;
      readonly outcome: Outcome;
      readonly atMs: number;
      readonly dueAtMs: number;
      /** What that attempt used, for its tenant's usage. Not published. */
      readonly used?: UsedByAttempt | undefined;
    }
  | { readonly type: "finished"; readonly result: JobResult };

type Started = Omit<Extract<JobEvent, { type: "started" }>, "type">;

/** As read from its stream. `id` is where to go on reading. */
export type IdentifiedEvent = JobEvent & { readonly id: string };

/** How far a job got, by its stream alone. */
export type JobProgress =
  /** `retried`: the attempt that ended, when another is to follow. */
  | { readonly state: "not-started"; readonly retried?: number }
  | { readonly state: "started" }
  | { readonly state: "finished"; readonly result: JobResult };

/** Writes and reads the events of jobs. Everything that a tenancy publishes goes through one script that compares the epoch. */
export class JobEvents {
  readonly #redis: Redis;
  /** Sends what holders publish in one tick as one call. */
  readonly exchanges: Exchanges;

  constructor(redis: Redis, options: { readonly usageDays?: number | undefined } = {}) {
    this.#redis = redis;
    this.exchanges = new Exchanges(redis, options);
  }

  publish(to: Publication, events: readonly JobEvent[]): Promise<Published> {
    const { key, jobId, part = "" } = to;
    const last = events.at(-1);
    if (last?.type === "finished" || last?.type === "retrying")
      return this.exchanges.end(to, endingOf(to, events, last));
    const keys = [redisKeys.lease(key), redisKeys.events(key, jobId), redisKeys.job(key, jobId)];
    const fields = events.flatMap((event) => [event.type, dataOf(event)]);
    return publish.runAccepted(this.#redis, keys, [to.epoch, to.instance, part, ...fields]);
  }

  /** Records that a job begins, unless it has ended, is cancelled, is another holder's, or would overtake a job that no worker runs. */
  begin(to: Publication, position: LinePosition, started: Started): Promise<Begun> {
    return this.exchanges.begin(to, beginningOf(to.jobId, position, started));
  }

  /** The end of a job, and in the same script the beginning of another of the same holder. */
  endAndBegin(
    to: Publication,
    {
      events,
      finished,
      next,
    }: {
      /** Published before the end. */
      readonly events: readonly JobEvent[];
      readonly finished: Extract<JobEvent, { type: "finished" }>;
      readonly next: { readonly jobId: string; readonly position: LinePosition; readonly started: Started };
    },
  ): Promise<[Published, Begun]> {
    const ending = endingOf(to, [...events, finished], finished);
    return this.exchanges.endAndBegin(to, ending, beginningOf(next.jobId, next.position, next.started));
  }

  /** Takes back a beginning that no event followed. False: an event followed, or that epoch did not record it in one of those takes. */
  unbegin(
    key: SandboxKey,
    jobId: string,
    by: { worker: string; epoch: number; attempt: number; takes?: readonly string[] | undefined },
  ): Promise<boolean> {
    const keys = [redisKeys.events(key, jobId), redisKeys.job(key, jobId)];
    // On the same connection as the beginning, so that it does not overtake it.
    return unbegin.runAccepted(this.#redis, keys, [by.epoch, by.worker, by.attempt, ...(by.takes ?? [])]);
  }

  /** Notes that a cancellation was requested: from here on the job does not begin. False: no such job is known. */
  requestCancellation(key: SandboxKey, jobId: string): Promise<boolean> {
    return noteCancellation.run(this.#redis, [redisKeys.job(key, jobId)], []);
  }

  /** Ends a job that no worker has begun, and takes it out of its queue. `begun`: its holder has to end it. */
  cancel(waiting: WaitingJob, result: JobResult): Promise<Cancelled> {
    const { key, jobId, attempt, inbox, queue, dueAtMs = 0 } = waiting;
    const keys = [
      ...[redisKeys.events(key, jobId), redisKeys.job(key, jobId), redisKeys.staged(key, jobId)],
      ...[queue.entryKey, redisKeys.lease(key), completedKey(key), failedKey(key)],
      ...queue.unfinishedKeys,
    ];
    const rememberedMs = Math.max(0, Math.ceil(dueAtMs - Date.now())) + keptMs;
    const ending = [inboxKey(inbox), keptMs, result.outcome.kind, JSON.stringify(result)];
    const args = [
      ...[key, jobId, attempt, rememberedMs, ...ending, stagedKeptMs],
      ...[queue.queuedId, walkedMost, entryPrefix(key), finishedKept, ...boardArguments(endedEntry(result))],
    ];
    return runInSlot(this.#redis, { key, script: cancel, keys, args });
  }

  async progress(key: SandboxKey, jobId: string): Promise<JobProgress> {
    const [last] = await this.#redis.xrevrangeBuffer(redisKeys.events(key, jobId), "+", "-", "COUNT", 1);
    if (!last) return { state: "not-started" };
    const event = readKnownEvent(last);
    if (event?.type === "retrying") return { state: "not-started", retried: event.attempt };
    return event?.type === "finished" ? { state: "finished", result: event.result } : { state: "started" };
  }

  /**
   * As `progress`, of one attempt. `retried`: it has ended, and another follows. If its events expired or are lost, the mark on
   * the attempt's entry shows that it has ended, and the job's own record that it began.
   */
  async attemptProgress(
    key: SandboxKey,
    jobId: string,
    attempt: number,
  ): Promise<JobProgress | { readonly state: "retried" }> {
    const [ended, { begun }, progress] = await Promise.all([
      this.#redis.hget(entryKey(key, queuedId(jobId, attempt)), "ended"),
      readAttempts(this.#redis, key, jobId),
      this.progress(key, jobId),
    ]);
    if (progress.state === "finished") return progress;
    if (ended === retryingMark) return { state: "retried" };
    if (ended !== null) return { state: "finished", result: resultOf(ended) };
    if (progress.state === "not-started" && progress.retried === undefined && begun === attempt)
      return { state: "started" };
    const retried = progress.state === "not-started" ? (progress.retried ?? 0) : 0;
    // The last event may be an earlier attempt's, whose end is still being published.
    if (begun > 0 && begun < attempt && retried < attempt) return { state: "not-started" };
    return begun > attempt || retried >= attempt ? { state: "retried" } : progress;
  }

  /** Events after an id, at most `count`. The id of the last one resumes. */
  async read(
    key: SandboxKey,
    jobId: string,
    after: string,
    count = 100,
  ): Promise<{ id: string; event: JobEvent }[]> {
    const from = after === "" ? "-" : `(${after}`;
    const entries = await this.#redis.xrangeBuffer(redisKeys.events(key, jobId), from, "+", "COUNT", count);
    return entries.map((entry) => ({ id: entry[0].toString(), event: readEvent(entry) }));
  }
}

function endingOf(
  { jobId, inbox, part = "", ends = { attempt: 1, leaves: false } }: Publication,
  events: readonly JobEvent[],
  last: Extract<JobEvent, { type: "finished" | "retrying" }>,
): Ending {
  const eventFields = events.flatMap((event) => [event.type, dataOf(event)]);
  const result = last.type === "finished" ? last.result : undefined;
  const isLong = result !== undefined && Buffer.byteLength(eventFields.at(-1) ?? "") > excerptBytes;
  return {
    ...{ jobId, queuedId: queuedId(jobId, ends.attempt), inbox, leaves: ends.leaves, part, eventFields },
    excerpt: isLong ? excerptOf(result) : "",
    outcome: result?.outcome.kind ?? "",
    used: usedArgument(result ?? (last.type === "retrying" ? last.used : undefined)),
    shown: last.type === "finished" ? endedEntry(last.result) : retriedEntry(last),
  };
}

function beginningOf(jobId: string, position: LinePosition, started: Started): Beginning {
  return { jobId, attempt: started.attempt, data: JSON.stringify(started), ...position };
}

/** The result of a job of which only the mark on its queue entry is left. */
function resultOf(mark: string): JobResult {
  return withText({ outcome: JSON.parse(mark), value: {}, timing: { wallMs: 0, cpuMs: 0 } });
}

function dataOf(event: JobEvent): string | Buffer {
  switch (event.type) {
    case "stdout":
    case "stderr":
      return event.bytes;
    case "started":
      return JSON.stringify({ ...event, type: undefined });
    case "retrying":
      return JSON.stringify({ ...event, type: undefined, used: undefined });
    case "artifact":
      return JSON.stringify(event.artifact);
    case "file":
      return JSON.stringify(event.file);
    case "finished":
      return JSON.stringify(event.result);
  }
}

type Entry = [id: Buffer, fields: Buffer[]];

/** Undefined for a type that this version does not know: a newer worker may publish it. */
export function readKnownEvent(entry: Entry): JobEvent | undefined {
  try {
    return readEvent(entry);
  } catch {
    return undefined;
  }
}

function readEvent([, fields]: Entry): JobEvent {
  const type = fields[1]?.toString();
  const data = fields[3] ?? Buffer.alloc(0);
  switch (type) {
    case "stdout":
    case "stderr":
      return { type, bytes: data };
    case "started":
    case "retrying":
      return { type, ...JSON.parse(data.toString()) };
    case "artifact":
      return { type, artifact: JSON.parse(data.toString()) };
    case "file":
      return { type, file: JSON.parse(data.toString()) };
    case "finished":
      return { type, result: withText(JSON.parse(data.toString())) };
    default:
      throw new TypeError(`an event of unknown type ${type}`);
  }
}
