import { checkLayout } from "@berth/client";
import { Fault } from "@berth/protocol";
import { checkRedis, connectRedis, isPasswordRefusal, type Redis, withoutPassword } from "@berth/redis";
import { ConfigError } from "../complaint.ts";

export const defaultRedis = "redis://127.0.0.1:6379";

/** Connects to Redis. Fails at once if none answers, where a worker would retry. */
export async function openRedis(url: string): Promise<Redis> {
  const address = withoutPassword(url);
  const refused = Promise.withResolvers<never>();
  refused.promise.catch(() => {});
  const redis = connectRedis({
    url,
    role: "commands",
    onOutage: ({ state, detail }) => {
      if (state === "lost") refused.reject(notReached(address, detail));
    },
  });
  try {
    await Promise.race([checkRedis(redis, url).then(() => checkLayout(redis)), refused.promise]);
    return redis;
  } catch (error) {
    redis.disconnect();
    throw error;
  }
}

function notReached(address: string, detail: string): Error {
  if (isPasswordRefusal(detail))
    return new ConfigError([`Redis at ${address} wants another name or password than REDIS_URL has`]);
  return new Fault("redis-unreachable", { address, detail });
}
