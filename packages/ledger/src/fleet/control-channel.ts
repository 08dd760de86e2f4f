import { setTimeout as sleep } from "node:timers/promises";
import { type ControlMessage, redisKeys, type WorkerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { nanoid } from "nanoid";

/** The channel that workers subscribe to. */
export const controlChannel = redisKeys.control;

/** Polling interval for the answer. */
const pollMs = 20;

/** Sends a message to all workers that listen now. One that reconnects does not get it. */
export async function sendToWorkers(redis: Redis, message: ControlMessage): Promise<void> {
  await redis.publish(redisKeys.control, JSON.stringify(message));
}

/**
 * Asks a worker for its status. Undefined: it did not answer in time. A worker that reconnects misses a message, so it is asked again
 * every `againMs`.
 */
export async function pingWorker(
  redis: Redis,
  worker: WorkerId,
  { withinMs, againMs = withinMs }: { readonly withinMs: number; readonly againMs?: number },
): Promise<Record<string, string | number> | undefined> {
  const answer = nanoid();
  const until = performance.now() + withinMs;
  for (let askMs = 0; performance.now() < until; await sleep(pollMs)) {
    if (performance.now() >= askMs) {
      await sendToWorkers(redis, { type: "ping", worker, answer });
      askMs = performance.now() + againMs;
    }
    const status = await redis.getdel(redisKeys.answer(answer));
    if (status !== null) return JSON.parse(status);
  }
  return undefined;
}
