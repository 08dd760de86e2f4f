import { queuePrefix, redisKeys, type SandboxKey, sandboxKey } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { redisNow } from "../redis-now.ts";
import { isCluster, runInSlot } from "../slots.ts";
import { jobQueueName, unfinishedKeys } from "./queue-layout.ts";

const forget = new Script({
  name: "forget",
  file: new URL("../../lua/forget.lua", import.meta.url),
  parse: (reply) => z.union([z.literal(0), z.literal(1)]).parse(reply) === 1,
});

/**
 * Removes the queue keys of sandboxes that were unused for `idleMs`, at most `limit` of them, found by an index. Lease, epoch, events and
 * results stay, and the next job creates the queue again.
 */
export async function forgetIdleQueues(
  redis: Redis,
  { idleMs, limit }: { readonly idleMs: number; readonly limit: number },
): Promise<SandboxKey[]> {
  const before = (await redisNow(redis)) - idleMs;
  const found = await redis.zrangebyscore(redisKeys.queues, "-inf", before, "LIMIT", 0, limit);
  const forgotten: SandboxKey[] = [];
  for (const key of found.map((text) => sandboxKey.parse(text))) {
    const keys = [redisKeys.lease(key), `${queuePrefix(key)}:${jobQueueName}`];
    const onCluster = await isCluster(redis);
    const isPending = onCluster && (await redis.zscore(redisKeys.pending, key)) !== null;
    const args = [key, idleMs, isPending ? "1" : ""];
    if (!(await runInSlot(redis, { key, script: forget, keys, args }))) continue;
    forgotten.push(key);
    if (onCluster) await dropQueue(redis, key);
  }
  return forgotten;
}

/** A job may have come in between. Then the queue exists again. */
async function dropQueue(redis: Redis, key: SandboxKey): Promise<void> {
  await redis.zrem(redisKeys.queues, key);
  if ((await redis.exists(...unfinishedKeys(key))) > 0)
    await redis.zadd(redisKeys.queues, await redisNow(redis), key);
}
