import { Fault, isFault } from "@berth/protocol";

const unreachable = /Connection is closed|timed out|ECONN|max retries/i;
/** Also in the middle: Redis before 7 puts a script's own words before it. */
const full = /\bOOM command not allowed\b/;

/** What Redis, or the connection to it, said of a change that was not made. */
export function redisFault(change: string, error: unknown): Fault {
  const detail = error instanceof Error ? error.message : String(error);
  const cause = { cause: error };
  if (unreachable.test(detail))
    return new Fault("redis-unreachable", { address: "the configured address", detail }, cause);
  if (full.test(detail)) return new Fault("redis-full", { script: change, detail }, cause);
  return new Fault("redis-refused", { script: change, detail }, cause);
}

/**
 * Whether Redis answered that it writes nothing for anybody, since it cannot write to its disk. Anything else may be true for this
 * client alone: a replica (READONLY), too few replicas, a lost connection, no answer. Scripts that must run on a Redis without memory
 * say so in their first line.
 */
export function refusesWrites(error: unknown): boolean {
  return isFault(error, "redis-refused") && /\bMISCONF\b/.test(error.context.detail);
}

/** For what a library of Redis' says: its word that there is no room is a fault of ours, anything else stays as it is. */
export function orRedisFull(change: string): (error: unknown) => never {
  return (error) => {
    throw error instanceof Error && full.test(error.message) ? redisFault(change, error) : error;
  };
}
