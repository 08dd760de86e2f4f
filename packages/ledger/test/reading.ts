import { type JobResult, redisKeys, type SandboxKey, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { expect } from "vitest";
import { type TestRedis, test as withRedis } from "../../../test/support/redis.ts";
import type { EndCheckOptions } from "../src/events/end-check.ts";
import type { Expectation } from "../src/events/inbox.ts";
import type { IdentifiedEvent } from "../src/events/job-events.ts";
import { type ResultOptions, StreamReader } from "../src/events/stream-reader.ts";

export const acme: SandboxKey = sandboxKey.parse("acme");

export function resultOf(stdout: string): JobResult {
  return {
    outcome: { kind: "exited", code: 0 },
    value: { stdout },
    timing: { wallMs: 1, cpuMs: 1 },
    text: stdout,
  };
}

/** Makes a record for every awaited job, as accepting it does. */
class AcceptedReader extends StreamReader {
  onWait: (jobId: string) => void = () => {};

  override expectedResult(key: SandboxKey, expected: Expectation): Promise<JobResult> {
    this.onWait(expected.jobId);
    return super.expectedResult(key, expected);
  }

  override result(key: SandboxKey, jobId: string, options?: ResultOptions): Promise<JobResult> {
    this.onWait(jobId);
    return super.result(key, jobId, options);
  }

  override follow(key: SandboxKey, jobId: string, after?: string, signal?: AbortSignal) {
    this.onWait(jobId);
    return super.follow(key, jobId, after, signal);
  }
}

/** Publishes events of jobs as a worker does, and opens readers for them. */
export class Reading {
  readonly redis: TestRedis;
  readonly commands: Redis;
  readonly #readers: StreamReader[] = [];

  constructor(redis: TestRedis) {
    this.redis = redis;
    this.commands = redis.connect();
  }

  reader(commands: Redis = this.redis.connect(), check?: EndCheckOptions): StreamReader {
    const name = `r${this.#readers.length}`;
    const reader = new AcceptedReader(commands, this.redis.connect("blocking"), name, check);
    reader.onWait = (jobId) => void this.accept(jobId).catch(() => {});
    this.#readers.push(reader);
    return reader;
  }

  /** How often Redis has carried out a command. */
  async calls(command: string): Promise<number> {
    const stats = await this.commands.info("commandstats");
    return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  }

  /** Makes its record, as the client that enqueued it did. */
  async accept(jobId: string): Promise<void> {
    await this.commands.hset(redisKeys.job(acme, jobId), "key", acme);
  }

  async publish(jobId: string, type: string, data: string | Buffer): Promise<string> {
    return (await this.commands.xadd(redisKeys.events(acme, jobId), "*", "t", type, "d", data)) ?? "";
  }

  async finish(jobId: string, stdout = "", inbox?: string): Promise<void> {
    const data = JSON.stringify(resultOf(stdout));
    await this.publish(jobId, "finished", data);
    if (inbox !== undefined) await this.commands.xadd(redisKeys.inbox(inbox), "*", "job", jobId, "d", data);
  }

  /** Connections that are blocked in a read. */
  async blocked(): Promise<{ id: string }[]> {
    const list = String(await this.commands.client("LIST"));
    const lines = list
      .split("\n")
      .filter((line) => /\bcmd=xread(group)?\b/.test(line) && /\bflags=\w*b/.test(line));
    return lines.map((line) => ({ id: /\bid=(\d+)/.exec(line)?.[1] ?? "" }));
  }

  async killBlocked(): Promise<void> {
    await expect.poll(() => this.blocked()).not.toEqual([]);
    for (const { id } of await this.blocked()) await this.commands.client("KILL", "ID", id);
  }

  async close(): Promise<void> {
    for (const reader of this.#readers) reader.close();
  }
}

/** A connection that holds back the replies of one command until `open` is called. */
export function gated(
  redis: Redis,
  command: "xrangeBuffer",
): { redis: Redis; held: () => number; open: () => void } {
  const gate = Promise.withResolvers<void>();
  let held = 0;
  const slow = async (...args: Parameters<Redis[typeof command]>) => {
    const reply = await redis[command](...args);
    held++;
    await gate.promise;
    return reply;
  };
  const get = (target: Redis, name: keyof Redis) => {
    if (name === command) return slow;
    const value = target[name];
    return typeof value === "function" ? value.bind(target) : value;
  };
  return { redis: new Proxy(redis, { get } as ProxyHandler<Redis>), held: () => held, open: gate.resolve };
}

/** Events in one word each. */
export function wordOf(event: IdentifiedEvent): string {
  return "bytes" in event ? event.bytes.toString() : event.type;
}

export async function allOf(events: AsyncIterable<IdentifiedEvent>): Promise<string[]> {
  const words: string[] = [];
  for await (const event of events) words.push(wordOf(event));
  return words;
}

export const test = withRedis.extend<{ reading: Reading }>({
  reading: async ({ redis }, use) => {
    const reading = new Reading(redis);
    try {
      await use(reading);
    } finally {
      await reading.close();
    }
  },
});
