import type { Redis } from "@berth/redis";
import type { ConnectionOptions } from "bullmq";

/** BullMQ's types know ioredis only by shape. */
export function bullConnection(redis: Redis): ConnectionOptions {
  return redis as unknown as ConnectionOptions;
}
