import { Fault, redisKeys } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";

/** New jobs are refused from this percentage of Redis' maxmemory on, where the fleet's settings say nothing else. */
const defaultFullAtPercent = 85;

const memory = new Script({
  name: "memory",
  file: new URL("../../lua/memory.lua", import.meta.url),
  parse: (reply) => z.literal([0, 1]).parse(reply) === 1,
});

/** Measures Redis' memory and marks a Redis that is nearly full, for `validMs`: without workers that measure, nobody is refused. */
export function markMemory(redis: Redis, validMs: number): Promise<boolean> {
  return memory.run(redis, [redisKeys.settings], [defaultFullAtPercent, validMs]);
}

/** What `nearly-full.lua` answers. */
export const nearlyFull = z.tuple([z.literal("redis-full"), z.number(), z.number()]);

export function nearlyFullFault([, used, from]: z.infer<typeof nearlyFull>): Fault {
  const detail = `it uses ${used} bytes, and new jobs are refused from ${from} on so that the others can end`;
  return new Fault("redis-full", { script: "a new job", detail });
}
