import { Fault } from "@berth/protocol";

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

/** Whether it is Redis' word that it has no room, wherever it was said. */
export function isRedisFull(error: unknown): boolean {
  return error instanceof Error && full.test(error.message);
}
