import type { Redis } from "ioredis";
import { primariesOf } from "./topology.ts";

/**
 * Counts Redis' connections with that name; undefined if this user may not list them. A dead process has none, because its host
 * closes them. A frozen process keeps them.
 */
export async function countConnections(redis: Redis, name: string): Promise<number | undefined> {
  const lists = await Promise.all(primariesOf(redis).map((node) => node.client("LIST"))).catch(
    () => undefined,
  );
  if (lists === undefined) return undefined;
  const lines = lists.flatMap((list) => String(list).split("\n"));
  return lines.filter((line) => line.split(" ").includes(`name=${name}`)).length;
}
