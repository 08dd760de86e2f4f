import type { Redis } from "ioredis";

/**
 * How many connections of that name Redis has, or undefined where it may not say. A process that died has none: its host closes them.
 * One that is frozen keeps them.
 */
export async function countConnections(redis: Redis, name: string): Promise<number | undefined> {
  const list = await redis.client("LIST").catch(() => undefined);
  if (typeof list !== "string") return undefined;
  return list.split("\n").filter((line) => line.split(" ").includes(`name=${name}`)).length;
}
