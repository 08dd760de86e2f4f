import { Command, type Redis } from "ioredis";
import { ClusterConnection, newPrimaries } from "./cluster-connection.ts";

/** On a cluster, a script may use keys of one hash slot only. */
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

/** The connection to the primary that owns a key; undefined while none is known. */
export function nodeOf(redis: Redis, key: string): Redis | undefined {
  const cluster = clusterOf(redis);
  if (!cluster) return redis;
  const slot = new Command("get", [key]).getSlot();
  const [address] = (slot === null ? undefined : cluster.slots[slot]) ?? [];
  return cluster.nodes("master").find(({ options: { host, port } }) => `${host}:${port}` === address);
}

/** Every primary; for a single Redis, that one. */
export function primariesOf(redis: Redis): Redis[] {
  return clusterOf(redis)?.nodes("master") ?? [redis];
}

/** Whether a replica can replace a primary without the client: with Sentinels, and on a cluster. */
export function failsOver(redis: Redis): boolean {
  return clusterOf(redis) !== undefined || (redis.options.sentinels ?? []).length > 0;
}

/**
 * Calls the listener after a reconnection, when commands sent before it may be lost. On a cluster: after a reconnection to any
 * node.
 */
export function onReconnect(redis: Redis, listener: () => void): () => void {
  const events = clusterOf(redis) ? ["ready", "+node", newPrimaries] : ["ready"];
  for (const event of events) redis.on(event, listener);
  return () => {
    for (const event of events) redis.off(event, listener);
  };
}

/** Another connection of the same kind, for calls that block in Redis. Reopened when it is silent for longer. */
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
