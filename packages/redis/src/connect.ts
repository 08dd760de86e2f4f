import {
  type Acceptance,
  Fault,
  isFault,
  type RedisAddress,
  type RedisHost,
  redisAddress,
} from "@berth/protocol";
import type { Redis } from "ioredis";
import { ClusterConnection } from "./cluster-connection.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { holdUntilChecked, type RedisCheck } from "./gate.ts";
import { redisFault } from "./refusal.ts";
import { Replicated } from "./replicated.ts";

export interface RedisOptions {
  /** A `redisUrl`, as `protocol` defines it. */
  readonly url: string;
  readonly role: RedisRole;
  /** The connection's name in Redis, for `countConnections`. No spaces. */
  readonly name?: string;
  /** When a write counts as made. Default: when the primary has it. */
  readonly accept?: Acceptance | undefined;
  /** Runs before the first command that may touch a key. If it throws, that command and all later ones fail with its error. */
  readonly check?: RedisCheck | undefined;
  /** Once when the connection is lost, once when it is back. */
  readonly onOutage?: (outage: { readonly state: "lost" | "back"; readonly detail: string }) => void;
}

/**
 * - `commands`: shared by short calls. A call waits for a reconnection for at most `commandTimeoutMs`; then it fails, and is
 *   not sent any more.
 * - `patient`: shared by short calls that wait for a reconnection for as long as it takes.
 * - `blocking`: one reader's own, for calls that block in Redis. Never shared: a call behind a blocking one waits too.
 * - `listening`: for subscriptions; see `listen`.
 */
export type RedisRole = "commands" | "patient" | "blocking" | "listening";

const commandTimeoutMs = 10_000;
/**
 * A connection that owes an answer and receives nothing for this long is reopened. Otherwise, if the peer vanished silently,
 * it would stay in use until the kernel stops retransmitting, after about 15 minutes. The largest request, 64 MiB, must be
 * sent within this time.
 */
const silentMs = 5_000;
/** Connect timeout: the host may be gone, and another may have taken over. */
const connectTimeoutMs = 3_000;

/** A cluster connection has the type of a single Redis connection, because the commands are the same. */
export function connectRedis(options: RedisOptions): Redis {
  const redis = connect(options);
  const { accept, onOutage } = options;
  // On a connection of their own, calls that wait for replicas hold up no others.
  if (accept) Replicated.attach(redis, connect(options), accept);
  let lost = false;
  redis.on("error", (error: Error & { lastNodeError?: Error }) => {
    if (!lost) onOutage?.({ state: "lost", detail: (error.lastNodeError ?? error).message });
    lost = true;
  });
  redis.on("ready", () => {
    if (lost) onOutage?.({ state: "back", detail: "" });
    lost = false;
  });
  return redis;
}

function connect(options: RedisOptions): Redis {
  const redis = open(options);
  if (options.check) holdUntilChecked(redis, options.check);
  return redis;
}

function open({ url, role, name }: RedisOptions): Redis {
  const options = {
    lazyConnect: false,
    ...(name === undefined ? {} : { connectionName: name }),
    enableReadyCheck: true,
    maxRetriesPerRequest: null,
    retryStrategy: retryMs,
    ...(role === "commands" ? { commandTimeout: commandTimeoutMs } : {}),
    ...(role === "blocking" ? {} : { socketTimeout: silentMs }),
  };
  const address = redisAddress(url);
  switch (address.kind) {
    case "single":
      return new Connection(options, address.url);
    case "socket":
      return new Connection({ ...options, path: address.path });
    case "sentinel":
      return new Connection({ ...options, ...sentinelOptions(address) });
    case "cluster": {
      const { retryStrategy: _, lazyConnect: __, ...ofNodes } = options;
      const { hosts, user, tls } = address;
      return ClusterConnection.connect(hosts, { ...ofNodes, ...user, ...(tls ? { tls: {} } : {}) }, retryMs);
    }
  }
}

/** With jitter: thousands of connections lose Redis at the same moment. */
function retryMs(times: number): number {
  return Math.min(50 * 2 ** Math.min(times, 6), 1_000) * (0.5 + Math.random() / 2);
}

function sentinelOptions(address: Extract<RedisAddress, { kind: "sentinel" }>): ConnectionOptions {
  const { hosts, primary, database, user, sentinelUser, tls } = address;
  const { username, password } = sentinelUser;
  return {
    sentinels: hosts.map(({ host, port }: RedisHost) => ({ host, port })),
    name: primary,
    db: database,
    ...user,
    ...(username === undefined ? {} : { sentinelUsername: username }),
    ...(password === undefined ? {} : { sentinelPassword: password }),
    ...(tls ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
    connectTimeout: connectTimeoutMs,
    sentinelCommandTimeout: connectTimeoutMs,
    sentinelRetryStrategy: retryMs,
    // ioredis' message about a new primary would permanently end a connection that is being reopened.
    failoverDetector: false,
    // A primary that became a replica: ask the Sentinels again, and send the command there.
    reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 2 : false),
  };
}

/** Throws the reason if this Redis cannot be used. Call it before anything depends on Redis. */
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

/** An address without its password, for messages and logs. */
export function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, "//***@").replace(/(sentinel_password=)[^&]*/, "$1***");
}
