import type { Redis } from "ioredis";

/** On a cluster one script may use keys of one hash slot only. */
export type Topology = "single" | "cluster";

const known = new WeakMap<Redis, Topology>();

/** Asked once per connection. */
export function topologyOf(redis: Redis): Topology | Promise<Topology> {
  return known.get(redis) ?? ask(redis);
}

async function ask(redis: Redis): Promise<Topology> {
  const info = await redis.info("cluster");
  const topology = info.includes("cluster_enabled:1") ? "cluster" : "single";
  known.set(redis, topology);
  return topology;
}
