import type { Redis } from "ioredis";
import { primariesOf } from "./topology.ts";

/**
 * How many connections of that name Redis has, or undefined where it may not say. A process that died has none: its host closes them.
 * One that is frozen keeps them.
 */
export async function countConnections(redis: Redis, name: string): Promise<number | undefined> {
  const lists = await Promise.all(primariesOf(redis).map((node) => node.client("LIST"))).catch(
    () => undefined,
  );
  if (lists === undefined) return undefined;
  const lines = lists.flatMap((list) => String(list).split("\n"));
  return lines.filter((line) => line.split(" ").includes(`name=${name}`)).length;
}
