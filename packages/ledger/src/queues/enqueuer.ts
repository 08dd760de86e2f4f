import { Fault, isFault, type Job, type SandboxKey, sandboxKeyOf, stagedAboveBytes } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { Staging } from "../events/staging.ts";
import { defaultPool, type LeaseState, Leases } from "../leases/leases.ts";
import { acceptJob, defaultWaitingLimits } from "./acceptance.ts";
import { entryKey, JobQueues, queuedId, unfinishedKeys } from "./job-queues.ts";
import { Offers } from "./offers.ts";
import { type Accepted, isBriefOutage, submissionFault } from "./submission.ts";

export interface EnqueueOptions {
  /** Nobody else can know the job's id: it was made just now, of chance. */
  readonly newId?: boolean;
}

/** With more room than this a producer does not ask before it adds; a limit may be passed by what producers add at the same time. */
const roomEnough = 1_000;
/** What was known of a sandbox's room is good for this long. */
const roomFreshMs = 1_000;
const roomsKept = 10_000;
/** While Redis refuses for reasons that pass, such as a failover, a job is submitted again for this long. */
const submitMs = 10_000;
const retryMs = 100;

/** One job on its way to the fleet. */
interface Submission {
  readonly key: SandboxKey;
  readonly job: Job;
  readonly beganMs: number;
  /** `unknown` from when the job is sent to its queue. */
  accepted: Accepted;
  /** The next job of the sandbox may be sent. */
  readonly onSent: () => void;
}

/**
 * Hands jobs to the fleet: accepted, added to the sandbox's queue, marked, offered. Adding and marking are one round trip, in that
 * order: a worker that releases in between sees the job, and a sweep that looks afterwards sees the mark. Only what is in its queue is marked.
 * A producer that dies between two steps leaves something the sweep finds, or nothing at all. A job is promised to end only after its mark.
 *
 * Each step is idempotent under the job's id. A fault of Redis names that id, and says whether the fleet may have the job; enqueueing
 * the job again under the same id runs it once.
 */
export class Enqueuer {
  readonly #redis: Redis;
  readonly #queues: JobQueues;
  readonly #leases: Leases;
  readonly #offers: Offers;
  readonly #staging: Staging;
  /**
   * By sandbox, while any of its jobs is on its way: what was handed in first is sent first, whatever it had to ask. Gives the fault if
   * Redis did not answer.
   */
  readonly #lastSent = new Map<SandboxKey, Promise<Fault | undefined>>();
  #closed = false;
  readonly #rooms = new Map<SandboxKey, { room: number; readonly atMs: number }>();

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#queues = new JobQueues(redis);
    this.#leases = new Leases(redis);
    this.#offers = new Offers(redis);
    this.#staging = new Staging(redis);
  }

  /** `known`: this attempt of the job was added before, by whomever. */
  async enqueue(job: Job, { newId = false }: EnqueueOptions = {}): Promise<"added" | "known"> {
    const key = sandboxKeyOf(job);
    const before = this.#lastSent.get(key);
    const sent = Promise.withResolvers<Fault | undefined>();
    this.#lastSent.set(key, sent.promise);
    const onSent = () => sent.resolve(undefined);
    const submission: Submission = { key, job, beganMs: performance.now(), accepted: "no", onSent };
    try {
      const away = await before;
      // It has waited as long as the one before it: trying on would make the last of many wait for the sum.
      if (away && performance.now() - submission.beganMs >= submitMs) throw away;
      return await this.#untilAnswered(submission, newId);
    } catch (error) {
      if (isFault(error, "redis-unreachable")) sent.resolve(error);
      throw submissionFault(error, job.id, submission.accepted);
    } finally {
      onSent();
      if (this.#lastSent.get(key) === sent.promise) this.#lastSent.delete(key);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#queues.close();
    await this.#offers.close();
  }

  async #untilAnswered(submission: Submission, newId: boolean): Promise<"added" | "known"> {
    for (let isNew = newId; ; isNew = false) {
      try {
        return await this.#submit(submission, isNew);
      } catch (error) {
        const waited = performance.now() - submission.beganMs;
        if (!isBriefOutage(error) || waited >= submitMs || this.#closed) throw error;
        await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    }
  }

  async #submit(submission: Submission, newId: boolean): Promise<"added" | "known"> {
    const { key, job } = submission;
    const ask = !newId || job.pool !== undefined || !this.#hasRoom(key);
    if (ask && (await acceptJob(this.#redis, key, job)) === "known") return "known";
    const lease = await this.#add(submission);
    this.#remember(key, lease.room);
    if (!lease.live && !lease.paused) await this.#offer(key, lease);
    return "added";
  }

  async #add(submission: Submission): Promise<LeaseState> {
    const { key, job, onSent } = submission;
    const { id, tenant, attempt, session, pool = defaultPool } = job;
    const large = Buffer.byteLength(JSON.stringify(job.request)) > stagedAboveBytes;
    const staged = large ? await this.#staging.put(key, id, job.request) : undefined;
    const limits = { ...defaultWaitingLimits, queueKeys: unfinishedKeys(key) };
    const entry = entryKey(key, queuedId(id, attempt));
    const about = { id, tenant, attempt, pool, session, kind: job.request.kind, entry };
    const mark = () => {
      const marking = this.#leases.mark(key, about, limits);
      onSent();
      return marking;
    };
    const before = submission.accepted;
    submission.accepted = "unknown";
    try {
      // Redis may have lost the script that adds, and been sent it after the mark: then the job was not there yet to be marked.
      const marked = (await this.#queues.add(key, job, mark, staged)) ?? (await mark());
      if (marked) return marked;
    } catch (error) {
      // Adding was refused before it changed anything, and marking is never refused for want of memory.
      if (isFault(error, "redis-full")) submission.accepted = before;
      throw error;
    }
    throw new Fault("redis-refused", { script: "mark", detail: "the job was added and is not in its queue" });
  }

  /** The job is accepted already. If it cannot be offered now, the sweep of a worker offers it. */
  async #offer(key: SandboxKey, { pool, home }: LeaseState): Promise<void> {
    if (this.#redis.status === "ready") await this.#offers.add(key, { pool, home }).catch(() => {});
  }

  #hasRoom(key: SandboxKey): boolean {
    const known = this.#rooms.get(key);
    if (!known || known.room < roomEnough || performance.now() - known.atMs > roomFreshMs) return false;
    known.room--;
    return true;
  }

  #remember(key: SandboxKey, room: number): void {
    this.#rooms.delete(key);
    this.#rooms.set(key, { room, atMs: performance.now() });
    const [oldest] = this.#rooms.keys();
    if (oldest !== undefined && this.#rooms.size > roomsKept) this.#rooms.delete(oldest);
  }
}
