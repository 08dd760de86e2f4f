import { redisKeys, type SandboxKey } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";

const note = new Script({
  name: "due-order",
  file: new URL("../../lua/due-order.lua", import.meta.url),
  parse: (reply) => z.literal(1).parse(reply),
});

export interface DueJob {
  readonly jobId: string;
  /** Removes the note, after the job was handed on or is gone. */
  remove(): Promise<void>;
}

/**
 * The delayed jobs of each sandbox by due time, and by acceptance where due times are equal. Several workers hand on what is due, side
 * by side, so BullMQ's own order is not enough.
 */
export class DueOrder {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Call it before the job is added to the schedule: a note without a job is dropped in its turn. */
  async note(key: SandboxKey, jobId: string, dueAtMs: number, keptUntilMs: number): Promise<void> {
    await note.run(this.#redis, [redisKeys.dueOrder(key)], [jobId, dueAtMs, keptUntilMs]);
  }

  /** The first of the sandbox's jobs that are due by `dueByMs`. */
  async first(key: SandboxKey, dueByMs: number): Promise<DueJob | undefined> {
    const name = redisKeys.dueOrder(key);
    const [member] = await this.#redis.zrangebyscore(name, "-inf", dueByMs, "LIMIT", 0, 1);
    if (member === undefined) return undefined;
    const remove = async () => void (await this.#redis.zrem(name, member));
    return { jobId: member.slice(member.indexOf(":") + 1), remove };
  }
}
