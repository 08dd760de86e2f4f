import { Command, type Redis } from "ioredis";
import { ClusterConnection, newPrimaries } from "./cluster-connection.ts";

/** On a cluster one script may use keys of one hash slot only. */
export type Topology = "single" | "cluster";

const known = new WeakMap<Redis, Topology>();

/** Asked once per connection. */
export function topologyOf(redis: Redis): Topology | Promise<Topology> {
  return known.get(redis) ?? (clusterOf(redis) ? "cluster" : ask(redis));
}

async function ask(redis: Redis): Promise<Topology> {
  const info = await redis.info("cluster");
  const topology = info.includes("cluster_enabled:1") ? "cluster" : "single";
  known.set(redis, topology);
  return topology;
}

/** The connection to the primary that has a key; undefined while none is known. */
export function nodeOf(redis: Redis, key: string): Redis | undefined {
  const cluster = clusterOf(redis);
  if (!cluster) return redis;
  const slot = new Command("get", [key]).getSlot();
  const [address] = (slot === null ? undefined : cluster.slots[slot]) ?? [];
  return cluster.nodes("master").find(({ options: { host, port } }) => `${host}:${port}` === address);
}

/** Every primary; of a single Redis that one. */
export function primariesOf(redis: Redis): Redis[] {
  return clusterOf(redis)?.nodes("master") ?? [redis];
}

/** Whether a replica may take the place of a primary behind its back: behind Sentinels, and on a cluster. */
export function failsOver(redis: Redis): boolean {
  return clusterOf(redis) !== undefined || (redis.options.sentinels ?? []).length > 0;
}

/**
 * Calls the listener when a connection was made anew: what was sent on the one before may be lost. On a cluster: to any of its
 * nodes.
 */
export function onReconnect(redis: Redis, listener: () => void): () => void {
  const events = clusterOf(redis) ? ["ready", "+node", newPrimaries] : ["ready"];
  for (const event of events) redis.on(event, listener);
  return () => {
    for (const event of events) redis.off(event, listener);
  };
}

/** Another connection of the same kind, for calls that block in Redis. One that is silent for longer is made anew. */
export function blockingDuplicate(redis: Redis, silentMs: number): Redis {
  const own = { commandTimeout: undefined, socketTimeout: silentMs };
  const cluster = clusterOf(redis);
  return cluster ? (cluster.another(own) as unknown as Redis) : redis.duplicate(own);
}

export function isClusterConnection(redis: Redis): boolean {
  return clusterOf(redis) !== undefined;
}

function clusterOf(redis: unknown): ClusterConnection | undefined {
  return redis instanceof ClusterConnection ? redis : undefined;
}
