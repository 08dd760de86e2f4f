import { byteSize, type RedisAddress, redisAddress } from "@berth/protocol";
import { primariesOf, type Redis, withoutPassword } from "@berth/redis";
import type { Config } from "../config.ts";
import { defaultRedis, openRedis } from "../door/open-redis.ts";
import { spanText } from "../terminal/quantities.ts";
import { clockFinding } from "./clock.ts";
import { type Finding, findingsOf } from "./finding.ts";

const { ok, warn, bad } = findingsOf("redis");
const leastVersion = [7, 0] as const;

/** Checks the fleet's Redis, which holds every accepted job. */
export async function* redisChecks(config: Config): AsyncGenerator<Finding> {
  const { redisUrl: url = defaultRedis } = config;
  let redis: Redis;
  try {
    redis = await openRedis(url);
  } catch (error) {
    yield bad(
      (error as Error).message,
      "start Redis, or correct REDIS_URL; `berth dev` brings one of its own",
    );
    return;
  }
  try {
    const primaries = primariesOf(redis);
    if (primaries.length > 1) yield ok(`a cluster of ${primaries.length} primaries`);
    for (const primary of primaries) {
      const info = parseInfo(await primary.info());
      yield* version(info, primaries.length > 1 ? addressOf(primary) : withoutPassword(url));
      yield* place(info, redisAddress(url).kind);
      yield* replicas(info, config);
      yield* memory(info);
      yield* persistence(info);
      yield await clock(primary);
    }
  } finally {
    redis.disconnect();
  }
}

type Info = ReadonlyMap<string, string>;

function parseInfo(text: string): Info {
  const pairs = text.split(/\r?\n/).map((line) => /^([^#:]+):(.*)$/.exec(line));
  return new Map(pairs.flatMap((pair) => (pair?.[1] === undefined ? [] : [[pair[1], pair[2] ?? ""]])));
}

function* version(info: Info, address: string): Generator<Finding> {
  const text = info.get("redis_version") ?? "0";
  const [major = 0, minor = 0] = text.split(".").map(Number);
  const isOld = major < leastVersion[0] || (major === leastVersion[0] && minor < leastVersion[1]);
  yield isOld
    ? bad(`Redis ${text} at ${address}`, `Berth needs ${leastVersion.join(".")} or newer`)
    : ok(`Redis ${text} at ${address}`);
}

function addressOf({ options: { host, port } }: Redis): string {
  return `${host}:${port}`;
}

function* place(info: Info, kind: RedisAddress["kind"]): Generator<Finding> {
  const isNode = info.get("redis_mode") === "cluster";
  if (isNode && kind !== "cluster")
    yield bad("it is one node of a cluster", "write REDIS_URL as redis+cluster://HOST:PORT,HOST:PORT");
  if (info.get("role") === "slave")
    yield bad("it is a replica and refuses writes", "point REDIS_URL at the primary");
}

/** For fleets where replicas must acknowledge writes. */
function* replicas(info: Info, { accept, replicas: least }: Config): Generator<Finding> {
  const connected = Number(info.get("connected_slaves") ?? 0);
  if (accept !== "replicated") return;
  if (connected < least)
    yield bad(
      `${connected} of ${least} replicas are connected: nothing is accepted`,
      "start the replicas, or lower BERTH_REPLICAS (0: a primary without replicas accepts alone)",
    );
  else if (connected === 0)
    yield warn("it has no replica and accepts alone: what it accepts now dies with it", "start the replicas");
  else yield ok(`${connected} ${connected === 1 ? "replica" : "replicas"} connected`);
}

function* memory(info: Info): Generator<Finding> {
  const policy = info.get("maxmemory_policy") ?? "unknown";
  const most = Number(info.get("maxmemory") ?? 0);
  const used = Number(info.get("used_memory") ?? 0);
  yield policy === "noeviction"
    ? ok(`maxmemory-policy noeviction, ${byteSize(used)} used${most > 0 ? ` of ${byteSize(most)}` : ""}`)
    : bad(
        `maxmemory-policy is ${policy}: it may drop accepted jobs`,
        "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf",
      );
  if (most === 0)
    yield warn(
      "it has no maxmemory: it grows until the machine has no memory left",
      "CONFIG SET maxmemory, and the same in redis.conf; at most two thirds of the machine's memory",
    );
  if (most > 0 && used > 0.8 * most)
    yield warn(
      `${Math.round((used / most) * 100)} % of its memory is used; from 85 % on new jobs are refused`,
      "raise maxmemory, or submit more slowly",
    );
}

function* persistence(info: Info): Generator<Finding> {
  if (info.get("aof_enabled") === "1") {
    const broken =
      info.get("aof_last_write_status") === "err" || info.get("aof_last_bgrewrite_status") === "err";
    yield broken
      ? bad("the append-only file could not be written last time", "look at Redis' disk and log")
      : ok("append-only file on: accepted jobs survive a restart");
    return;
  }
  const lastSaveMs = Number(info.get("rdb_last_save_time") ?? 0) * 1_000;
  const age = lastSaveMs > 0 ? `, the last snapshot ${spanText(Date.now() - lastSaveMs)} old` : "";
  yield warn(
    `no append-only file${age}: a crash of Redis loses accepted jobs`,
    "CONFIG SET appendonly yes, and the same in redis.conf",
  );
}

async function clock(redis: Redis): Promise<Finding> {
  const beforeMs = Date.now();
  const [seconds, micros] = await redis.time();
  const hereMs = (beforeMs + Date.now()) / 2;
  return clockFinding("redis", "Redis", Number(seconds) * 1_000 + Number(micros) / 1_000 - hereMs);
}
