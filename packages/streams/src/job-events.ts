import { type ArtifactRef, type JobResult, type Outcome, redisKeys, type SandboxKey } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";

/** Events of a finished job are kept this long; so is the memory that its id was used. */
const keptMs = 24 * 3_600_000;
/** A cancelled job's request goes a moment later: somebody who has just taken the job would take it for lost. */
const stagedKeptMs = 60_000;

const reply = z.union([
  z.tuple([z.literal(1), z.string()]).transform(() => "published" as const),
  z.tuple([z.literal(0), z.number()]).transform(() => "fenced" as const),
  z.tuple([z.literal(2), z.string()]).transform(() => "finished-before" as const),
]);
const publish = new Script({
  name: "publish",
  file: new URL("../lua/publish.lua", import.meta.url),
  parse: (value) => reply.parse(value),
});

export type Published = z.infer<typeof reply>;

const beginReply = z.union([
  z.tuple([z.literal(1)]).transform(() => "begun" as const),
  z.tuple([z.literal(0), z.number()]).transform(() => "fenced" as const),
  z.tuple([z.literal(2)]).transform(() => "finished-before" as const),
  z.tuple([z.literal(3)]).transform(() => "cancelled" as const),
  z.tuple([z.literal(4)]).transform(() => "out-of-turn" as const),
]);
const begin = new Script({
  name: "begin",
  file: new URL("../lua/begin.lua", import.meta.url),
  parse: (value) => beginReply.parse(value),
});

export type Begun = z.infer<typeof beginReply>;

const cancelReply = z.union([
  z.literal(1).transform(() => "told" as const),
  z.literal(2).transform(() => "finished-before" as const),
  z.literal(0).transform(() => "begun" as const),
]);
const cancel = new Script({
  name: "cancel",
  file: new URL("../lua/cancel.lua", import.meta.url),
  parse: (value) => cancelReply.parse(value),
});

export type Cancelled = z.infer<typeof cancelReply>;

/** A job that waits: in its sandbox's queue, or for its time. */
export interface WaitingJob {
  readonly key: SandboxKey;
  readonly jobId: string;
  readonly attempt: number;
  readonly inbox: string | undefined;
  /** Until when somebody may still hand it on, and must find that it has ended. */
  readonly dueAtMs?: number | undefined;
}

export interface Publication {
  readonly key: SandboxKey;
  readonly epoch: number;
  readonly jobId: string;
  /** Whose inbox learns of the end. */
  readonly inbox?: string | undefined;
  /** Names this publication, so that saying it again after a lost answer adds nothing. */
  readonly part?: string | undefined;
}

/** Where a job is in its sandbox's queue. */
export interface JobPlace {
  /** Of the list of what is taken from the queue. */
  readonly takenKey: string;
  readonly queuedId: string;
  /** What was taken before it and is known to whoever begins it. */
  readonly before: readonly string[];
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
  | {
      /** An attempt ended, and another follows. */
      readonly type: "retrying";
      readonly attempt: number;
      readonly outcome: Outcome;
      readonly atMs: number;
      readonly dueAtMs: number;
    }
  | { readonly type: "finished"; readonly result: JobResult };

/** How far a job got, by its stream alone. */
export type JobProgress =
  /** `retried`: the attempt that ended, when another is to follow. */
  | { readonly state: "not-started"; readonly retried?: number }
  | { readonly state: "started" }
  | { readonly state: "finished"; readonly result: JobResult };

/** What is said of a job. Everything a tenancy publishes goes through one script that compares the epoch. */
export class JobEvents {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  publish(to: Publication, events: readonly JobEvent[]): Promise<Published> {
    const inbox = to.inbox === undefined ? redisKeys.results : redisKeys.inbox(to.inbox);
    const keys = [
      redisKeys.lease(to.key),
      redisKeys.events(to.key, to.jobId),
      redisKeys.results,
      inbox,
      redisKeys.job(to.jobId),
      redisKeys.unfinished,
      redisKeys.staged(to.key, to.jobId),
    ];
    const fields = events.flatMap((event) => [event.type, dataOf(event)]);
    const hasInbox = to.inbox === undefined ? "0" : "1";
    const end = events.find((event) => event.type === "finished")?.result.outcome.kind ?? "";
    return publish.run(this.#redis, keys, [
      to.epoch,
      to.key,
      to.jobId,
      keptMs,
      hasInbox,
      end,
      to.part ?? "",
      ...fields,
    ]);
  }

  /** Says that a job begins, unless it ended, is to be cancelled, is no longer ours, or would overtake one that nobody runs. */
  begin(
    to: Publication,
    place: JobPlace,
    started: Omit<Extract<JobEvent, { type: "started" }>, "type">,
  ): Promise<Begun> {
    const keys = [
      redisKeys.lease(to.key),
      redisKeys.events(to.key, to.jobId),
      redisKeys.cancelled(to.key),
      place.takenKey,
      redisKeys.job(to.jobId),
    ];
    return begin.run(this.#redis, keys, [
      to.epoch,
      to.jobId,
      keptMs,
      JSON.stringify(started),
      started.attempt,
      place.queuedId,
      ...place.before,
    ]);
  }

  /** Ends a job that nobody has begun, whoever holds its sandbox. `begun`: that is theirs to do. */
  cancel({ key, jobId, attempt, inbox, dueAtMs = 0 }: WaitingJob, result: JobResult): Promise<Cancelled> {
    const keys = [
      redisKeys.events(key, jobId),
      redisKeys.results,
      inbox === undefined ? redisKeys.results : redisKeys.inbox(inbox),
      redisKeys.job(jobId),
      redisKeys.unfinished,
      redisKeys.staged(key, jobId),
    ];
    const rememberedMs = Math.max(0, Math.ceil(dueAtMs - Date.now())) + keptMs;
    const told = [inbox === undefined ? "" : keptMs, result.outcome.kind, JSON.stringify(result)];
    return cancel.run(this.#redis, keys, [key, jobId, attempt, rememberedMs, ...told, stagedKeptMs]);
  }

  async progress(key: SandboxKey, jobId: string): Promise<JobProgress> {
    const [last] = await this.#redis.xrevrangeBuffer(redisKeys.events(key, jobId), "+", "-", "COUNT", 1);
    if (!last) return { state: "not-started" };
    const event = readEvent(last);
    if (event.type === "retrying") return { state: "not-started", retried: event.attempt };
    return event.type === "finished" ? { state: "finished", result: event.result } : { state: "started" };
  }

  /** As `progress`, of one attempt. `retried`: it has ended, and another follows. */
  async attemptProgress(
    key: SandboxKey,
    jobId: string,
    attempt: number,
  ): Promise<JobProgress | { readonly state: "retried" }> {
    const begun = Number((await this.#redis.hget(redisKeys.job(jobId), "begun")) ?? 0);
    const progress = await this.progress(key, jobId);
    if (progress.state === "finished") return progress;
    const retried = progress.state === "not-started" ? (progress.retried ?? 0) : 0;
    // What was last said may be an earlier attempt's, whose end is still being told.
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

function dataOf(event: JobEvent): string | Buffer {
  switch (event.type) {
    case "stdout":
    case "stderr":
      return event.bytes;
    case "started":
    case "retrying":
      return JSON.stringify({ ...event, type: undefined });
    case "artifact":
      return JSON.stringify(event.artifact);
    case "finished":
      return JSON.stringify(event.result);
  }
}

type Entry = [id: Buffer, fields: Buffer[]];

export function readEvent([, fields]: Entry): JobEvent {
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
    case "finished":
      return { type, result: JSON.parse(data.toString()) };
    default:
      throw new TypeError(`an event of unknown type ${type}`);
  }
}
