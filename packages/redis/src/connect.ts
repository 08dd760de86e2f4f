import { Fault, isFault } from "@berth/protocol";
import type { Redis } from "ioredis";
import { Connection } from "./connection.ts";
import { redisFault } from "./refusal.ts";

export interface RedisOptions {
  /** `redis://…`, `rediss://…` or `unix:///path`. */
  readonly url: string;
  readonly role: RedisRole;
  /** What Redis calls it; see `countConnections`. No spaces. */
  readonly name?: string;
  /** Once when the connection is lost, once when it is back. */
  readonly onOutage?: (outage: { readonly state: "lost" | "back"; readonly detail: string }) => void;
}

/**
 * - `commands`: shared by short calls. A call waits for a reconnection for at most `commandTimeoutMs`; then it fails, and is
 *   not sent any more.
 * - `patient`: shared by short calls that wait for a reconnection for as long as it takes.
 * - `blocking`: one reader's own, for calls that block in Redis. Never shared: a call behind a blocking one waits too.
 */
export type RedisRole = "commands" | "patient" | "blocking";

const commandTimeoutMs = 10_000;
/**
 * A connection on which an answer is due and nothing arrives for this long is made anew. One whose other end vanished without a word
 * would otherwise be used until the kernel stops retransmitting, after about 15 minutes. The largest request, 64 MiB, has to be
 * sent within this time.
 */
const silentMs = 5_000;

export function connectRedis({ url, role, name, onOutage }: RedisOptions): Redis {
  const path = url.startsWith("unix://") ? { path: url.slice("unix://".length) } : {};
  const options = {
    ...path,
    lazyConnect: false,
    ...(name === undefined ? {} : { connectionName: name }),
    enableReadyCheck: true,
    maxRetriesPerRequest: null,
    // With jitter: thousands of connections lose Redis at the same moment.
    retryStrategy: (times: number) =>
      Math.min(50 * 2 ** Math.min(times, 6), 1_000) * (0.5 + Math.random() / 2),
    ...(role === "commands" ? { commandTimeout: commandTimeoutMs } : {}),
    ...(role === "blocking" ? {} : { socketTimeout: silentMs }),
  };
  const redis = new Connection(options, "path" in path ? undefined : url);
  let lost = false;
  redis.on("error", (error: Error) => {
    if (!lost) onOutage?.({ state: "lost", detail: error.message });
    lost = true;
  });
  redis.on("ready", () => {
    if (lost) onOutage?.({ state: "back", detail: "" });
    lost = false;
  });
  return redis;
}

/** Says what is wrong with a Redis that cannot be used, before anything depends on it. */
export async function checkRedis(redis: Redis, address: string): Promise<{ readonly version: string }> {
  try {
    const info = await redis.info("server");
    return { version: /redis_version:(\S+)/.exec(info)?.[1] ?? "unknown" };
  } catch (error) {
    const fault = redisFault("INFO", error);
    if (isFault(fault, "redis-unauthorized")) throw fault;
    const { detail } = fault.context;
    throw new Fault("redis-unreachable", { address: withoutPassword(address), detail }, { cause: error });
  }
}

/** An address for messages and logs. */
export function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, "//***@");
}
