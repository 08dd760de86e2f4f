import { Fault, type JobResult, redisKeys, type SandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { invalid } from "../checked.ts";
import { EndCheck, type EndCheckOptions } from "./end-check.ts";
import { EventChannels } from "./event-channels.ts";
import { EventFollower } from "./event-follower.ts";
import { type Expectation, Inbox } from "./inbox.ts";
import type { IdentifiedEvent } from "./job-events.ts";
import { watchResult } from "./result-watch.ts";
import { StreamTail } from "./stream-tail.ts";
import { Waits } from "./waits.ts";

export interface ResultOptions {
  /** The end may also come by the inbox. The first of both counts. */
  readonly expected?: Expectation;
  /** Listens only to the inbox for this long. Most jobs are over by then, and cost no read of their own stream. */
  readonly listenAfterMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Everything that a client waits for, on one blocking connection: the ends of its jobs, and the events of any job of any
 * client. Each job's stream is read once, however many follow it.
 *
 * Survives lost connections and restarts of Redis without losing or repeating anything that Redis kept. A wait for a job that Redis
 * has forgotten ends with the fault `job-unknown`. After `close()` every wait ends with the fault `aborted`, and every
 * follower has reached the end.
 */
export class StreamReader {
  readonly name: string;
  readonly #commands: Redis;
  readonly #tail: StreamTail;
  readonly #inbox: Inbox;
  readonly #channels: EventChannels;
  readonly #check: EndCheck;
  readonly #waits = new Waits();

  /** The blocking connection is the reader's own, and closed with it. */
  constructor(commands: Redis, blocking: Redis, name: string, check: EndCheckOptions = {}) {
    this.name = name;
    this.#commands = commands;
    this.#tail = new StreamTail(commands, blocking, name);
    this.#inbox = new Inbox(commands, this.#tail, name);
    this.#channels = new EventChannels(this.#tail);
    this.#check = new EndCheck(commands, blocking, check);
  }

  /** Expects the end of a job that is enqueued with this reader's name as its inbox. Call it before enqueueing the job. */
  expect(jobId: string): Expectation {
    return this.#inbox.expect(jobId);
  }

  /** The end of a job that only this client enqueued, from its inbox. Call it after the job was accepted. */
  async expectedResult(key: SandboxKey, expected: Expectation): Promise<JobResult> {
    const check = this.#check.watch(key, expected.jobId);
    try {
      return await Promise.race([expected.result, check.result]);
    } finally {
      check.stop();
      expected.forget();
    }
  }

  /** The end of any job that was accepted, by any client. */
  async result(key: SandboxKey, jobId: string, options: ResultOptions = {}): Promise<JobResult> {
    const { expected, listenAfterMs = 0 } = options;
    try {
      if (!expected) return await this.#listen(key, jobId, options.signal);
      const early = listenAfterMs > 0 && (await resultWithin(listenAfterMs, expected, options.signal));
      return early || (await this.#listen(key, jobId, options.signal, expected.result));
    } finally {
      expected?.forget();
    }
  }

  /** A job's events, from the beginning or after an event's id, until its end. */
  async *follow(
    key: SandboxKey,
    jobId: string,
    after = "",
    signal?: AbortSignal,
  ): AsyncGenerator<IdentifiedEvent> {
    if (!/^(\d+(-\d+)?)?$/.test(after))
      throw invalid("the event's id", after, "not the id of an event, which is digits, or digits-digits");
    const wait = this.#waits.begin(signal);
    const stream = redisKeys.events(key, jobId);
    const follower = new EventFollower(this.#commands, this.#channels, stream, after, wait.signal);
    const check = this.#check.watch(key, jobId);
    check.result.catch((fault: Fault) => follower.fail(fault));
    try {
      while (!wait.signal.aborted) {
        for (const event of await follower.next()) {
          yield event;
          if (event.type === "finished") return;
          if (wait.signal.aborted) break;
        }
      }
    } finally {
      check.stop();
      follower.stop();
      wait.end();
    }
    if (signal?.aborted) throw new Fault("aborted", { operation: `following the job ${jobId}` });
  }

  close(): void {
    if (this.#waits.closed) return;
    this.#waits.close();
    this.#check.close();
    this.#inbox.close();
    this.#tail.close();
  }

  async #listen(
    key: SandboxKey,
    jobId: string,
    outer?: AbortSignal,
    ...others: Promise<JobResult>[]
  ): Promise<JobResult> {
    const { signal, end } = this.#waits.begin(outer);
    const stream = redisKeys.events(key, jobId);
    const check = this.#check.watch(key, jobId);
    const watched = watchResult(this.#commands, this.#channels, stream, signal);
    try {
      return await Promise.race([watched, check.result, ...others]);
    } finally {
      check.stop();
      end();
    }
  }
}

/** Undefined if the end did not reach the inbox in time. */
async function resultWithin(
  ms: number,
  expected: Expectation,
  signal?: AbortSignal,
): Promise<JobResult | undefined> {
  const late = Promise.withResolvers<undefined>();
  const stop = () => late.resolve(undefined);
  const timer = setTimeout(stop, signal?.aborted ? 0 : ms);
  signal?.addEventListener("abort", stop);
  try {
    return await Promise.race([expected.result, late.promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}
