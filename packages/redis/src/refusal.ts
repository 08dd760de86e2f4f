import { Fault, isFault } from "@berth/protocol";

const unreachable =
  /Connection is closed|aborted due to connection close|isn't writeable|timed out|ECONN|max retries/i;
/** Not anchored: Redis before 7 puts the script's text before the error code. */
const full = /\bOOM command not allowed\b/;
/** Errors of a Redis that requires another user name or password. */
const wrongPassword = /\b(NOAUTH|WRONGPASS|NOPERM|invalid password)\b/;

/** The error of a cluster node to a client that treats it as a single Redis. */
const oneOfMany = /^MOVED\b/;

type RedisFault = Fault<
  "redis-unreachable" | "redis-unauthorized" | "redis-full" | "redis-refused" | "redis-unreplicated"
>;

/** Translates an error of Redis, or of the connection to it, for one command or script. */
export function redisFault(change: string, error: unknown): RedisFault {
  const known = isFault(error) ? (error as RedisFault) : connectionFault(error);
  if (known) return known;
  const detail = error instanceof Error ? error.message : String(error);
  if (full.test(detail)) return new Fault("redis-full", { script: change, detail }, { cause: error });
  const why = oneOfMany.test(detail)
    ? "it is one node of a cluster; write its address as redis+cluster://HOST:PORT,HOST:PORT"
    : detail;
  return new Fault("redis-refused", { script: change, detail: why }, { cause: error });
}

/** Undefined for an error about the command itself, which ioredis and BullMQ must see. */
export function connectionFault(
  error: unknown,
): Fault<"redis-unreachable" | "redis-unauthorized"> | undefined {
  if (!(error instanceof Error) || isFault(error)) return undefined;
  const detail = error.message;
  if (isPasswordRefusal(detail)) return new Fault("redis-unauthorized", { detail }, { cause: error });
  if (!unreachable.test(detail)) return undefined;
  return new Fault("redis-unreachable", { address: "the configured address", detail }, { cause: error });
}

export function isPasswordRefusal(detail: string): boolean {
  return wrongPassword.test(detail);
}

/**
 * Whether Redis refuses all writes because it cannot write to its disk. Other errors may concern only this client: a replica
 * (READONLY), too few replicas, a lost connection, no answer. Scripts that must run on a Redis without memory have a flag for it
 * in their first line.
 */
export function refusesWrites(error: unknown): boolean {
  return isFault(error, "redis-refused") && /\bMISCONF\b/.test(error.context.detail);
}

/** For errors of a Redis library: translates "out of memory", and rethrows any other error unchanged. */
export function orRedisFull(change: string): (error: unknown) => never {
  return (error) => {
    throw error instanceof Error && full.test(error.message) ? redisFault(change, error) : error;
  };
}
