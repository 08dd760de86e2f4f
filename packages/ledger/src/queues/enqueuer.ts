import {
  type Fault,
  isFault,
  type Job,
  type SandboxKey,
  sandboxKeyOf,
  stagedAboveBytes,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { Staging } from "../events/staging.ts";
import { isCluster } from "../slots.ts";
import { Offers } from "./offers.ts";
import { type Accepted, isBriefOutage, submissionFault } from "./submission.ts";
import { type SubmittedTo, submitJob } from "./submit.ts";

/** For how long to retry a submission that Redis refuses for a passing reason, such as a failover. */
const submitMs = 10_000;
const retryMs = 100;

/** The fleet did not accept the job, and this call cannot have it accepted later. */
function isRefusal(error: unknown): boolean {
  return (["sandbox-full", "fleet-full", "tenant-full", "wrong-pool"] as const).some((code) =>
    isFault(error, code),
  );
}

/** The fleet's answer to a submission. */
export interface Acceptance {
  /** False: this attempt of the job was added before, by any producer. */
  readonly isNew: boolean;
  /** By Redis' clock; undefined if an earlier submission had the job accepted. */
  readonly acceptedAtMs?: number | undefined;
}

/** One job on its way to the fleet. */
interface Submission {
  readonly key: SandboxKey;
  readonly job: Job;
  readonly beganMs: number;
  /** `unknown` from the moment when the job is sent. */
  accepted: Accepted;
  /** Resolves when the next job of the sandbox may be sent. */
  readonly onSent: () => void;
}

/**
 * Submits jobs: one script adds a job, marks its sandbox and wakes the holder; a sandbox without a holder is then offered.
 * A producer that dies before the offer leaves a marked sandbox, which the sweep of a worker offers.
 *
 * Submitting is idempotent under the job's id. A fault of Redis names that id, and whether the fleet may have the job; enqueueing
 * the job again under the same id runs it once.
 */
export class Enqueuer {
  readonly #redis: Redis;
  readonly #offers: Offers;
  readonly #staging: Staging;
  /**
   * By sandbox, while any of its jobs is on its way. Jobs are sent in the order of the calls, also when an earlier one is staged. Resolves
   * to the fault if Redis did not answer.
   */
  readonly #lastSent = new Map<SandboxKey, Promise<Fault | undefined>>();
  #closed = false;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#offers = new Offers(redis);
    this.#staging = new Staging(redis);
  }

  async enqueue(job: Job): Promise<Acceptance> {
    const key = sandboxKeyOf(job);
    const before = this.#lastSent.get(key);
    const sent = Promise.withResolvers<Fault | undefined>();
    this.#lastSent.set(key, sent.promise);
    const onSent = () => sent.resolve(undefined);
    const submission: Submission = { key, job, beganMs: performance.now(), accepted: "no", onSent };
    try {
      const outage = await before;
      // It has waited as long as the job before it. Another try would make the last of many jobs wait for the sum.
      if (outage && performance.now() - submission.beganMs >= submitMs) throw outage;
      return await this.#untilAnswered(submission);
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
    await this.#offers.close();
  }

  async #untilAnswered(submission: Submission): Promise<Acceptance> {
    for (;;) {
      try {
        return await this.#submit(submission);
      } catch (error) {
        const waited = performance.now() - submission.beganMs;
        if (!isBriefOutage(error) || waited >= submitMs || this.#closed) throw error;
        await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    }
  }

  async #submit(submission: Submission): Promise<Acceptance> {
    const { key, job, onSent } = submission;
    const large = Buffer.byteLength(JSON.stringify(job.request)) > stagedAboveBytes;
    const staged = large ? await this.#staging.put(key, job) : undefined;
    const before = submission.accepted;
    submission.accepted = "unknown";
    let to: SubmittedTo | "known";
    try {
      const submitting = submitJob(this.#redis, key, job, staged, onSent);
      // A connection keeps the order of its calls. On a cluster a call may be redirected, and overtaken by the next.
      if (!(await isCluster(this.#redis))) onSent();
      to = await submitting;
    } catch (error) {
      // A Redis without memory refuses the whole script.
      if (isFault(error, "redis-full")) submission.accepted = before;
      // Left in place, it would count against the tenant for an hour, and no job would ever read it.
      if (staged && isRefusal(error)) await this.#staging.drop(key, job).catch(() => {});
      throw error;
    }
    if (to === "known") return { isNew: false };
    if (!to.live && !to.paused) await this.#offer(key, to);
    return { isNew: true, acceptedAtMs: to.acceptedAtMs };
  }

  /** The job is accepted already. If this fails, the sweep of a worker offers the sandbox. */
  async #offer(key: SandboxKey, { pool, home }: SubmittedTo): Promise<void> {
    if (this.#redis.status === "ready") await this.#offers.add(key, { pool, home }).catch(() => {});
  }
}
