import { Fault, redisKeys } from "@berth/protocol";
import { primariesOf, type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { isCluster } from "../slots.ts";

/** New jobs are refused from this percentage of Redis' maxmemory on, where the fleet's settings say nothing else. */
const defaultFullAtPercent = 85;

const memory = new Script({
  name: "memory",
  file: new URL("../../lua/memory.lua", import.meta.url),
  parse: (reply) => z.literal([0, 1]).parse(reply) === 1,
});

/** Measures Redis' memory and marks a Redis that is nearly full, for `validMs`. While no worker measures, no producer is refused. */
export async function markMemory(redis: Redis, validMs: number): Promise<boolean> {
  const measured = (await isCluster(redis)) ? await fullestPrimary(redis) : [];
  return await memory.run(redis, [redisKeys.settings], [defaultFullAtPercent, validMs, ...measured]);
}

/** Used bytes and maxmemory of the fullest primary. */
async function fullestPrimary(redis: Redis): Promise<number[]> {
  const infos = await Promise.all(primariesOf(redis).map((primary) => primary.info("memory")));
  const measured = infos.map((info) => {
    const bytes = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
    return { used: bytes("used_memory") - bytes("mem_not_counted_for_evict"), most: bytes("maxmemory") };
  });
  const share = ({ used, most }: { used: number; most: number }) => (most === 0 ? 0 : used / most);
  const fullest = measured.sort((a, b) => share(b) - share(a))[0];
  return fullest ? [fullest.used, fullest.most] : [];
}

/** The answer of `nearly-full.lua`. */
export const nearlyFull = z.tuple([z.literal("redis-full"), z.number(), z.number()]);

export function nearlyFullFault([, used, from]: z.infer<typeof nearlyFull>): Fault {
  const detail = `it uses ${used} bytes, and new jobs are refused from ${from} on so that the others can end`;
  return new Fault("redis-full", { script: "a new job", detail });
}
