import { isFault } from "./fault.ts";

/**
 * Whether the same call may succeed a moment later. Redis refuses for reasons that pass, too: no memory, a script that takes long. What a
 * worker has to do is never given up for such a fault; a caller who can give up looks at what Redis answered (`passes` of the ledger).
 */
export function mayPass(error: unknown): boolean {
  return !isFault(error) || error.retry || error.code === "redis-refused";
}
