import { redisKeys, type SandboxKey, type WorkerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** The pool of a sandbox whose producers named none. */
export const defaultPool = "default";

const fields = ["worker", "instance", "epoch", "deadline", "home", "pool", "trouble"] as const;

/**
 * What Redis keeps of a sandbox besides its jobs. The scripts in `lua` write it; this file and `lua/fenced.lua` are where its fields
 * are read.
 */
export interface LeaseRecord {
  /** Undefined when it was released, or never taken. Its lease may have expired. */
  readonly worker: WorkerId | undefined;
  readonly instance: string | undefined;
  /** 0 before it was first taken. */
  readonly epoch: number;
  /** By Redis' clock. */
  readonly deadlineMs: number;
  readonly home: string | undefined;
  readonly pool: string;
  /** Why no sandbox could be had for its jobs. */
  readonly trouble: string | undefined;
}

export async function readLease(redis: Redis, key: SandboxKey): Promise<LeaseRecord> {
  const [worker, instance, epoch, deadline, home, pool, trouble] = await redis.hmget(
    redisKeys.lease(key),
    ...fields,
  );
  return {
    worker: (worker || undefined) as WorkerId | undefined,
    instance: instance || undefined,
    epoch: Number(epoch ?? 0),
    deadlineMs: Number(deadline ?? 0),
    home: home ?? undefined,
    pool: pool ?? defaultPool,
    trouble: trouble ?? undefined,
  };
}

/** Who holds the sandbox, by Redis' time `nowMs`. */
export function holderIn({ worker, deadlineMs }: LeaseRecord, nowMs: number): WorkerId | undefined {
  return deadlineMs > nowMs ? worker : undefined;
}

/** Keeps why the sandbox's jobs wait, for people who ask. Decides nothing. */
export async function noteTrouble(redis: Redis, key: SandboxKey, trouble: string | undefined): Promise<void> {
  if (trouble === undefined) await redis.hdel(redisKeys.lease(key), "trouble");
  else await redis.hset(redisKeys.lease(key), "trouble", trouble.slice(0, 500));
}
