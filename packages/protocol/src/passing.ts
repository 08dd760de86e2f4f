import { isFault } from "./fault.ts";

/**
 * Whether the same call may succeed a moment later. Redis also refuses for passing reasons, such as a lack of memory or a long script. A
 * worker never gives up for such a fault. A caller that may give up checks Redis' answer (`passes` of the ledger).
 */
export function mayPass(error: unknown): boolean {
  return !isFault(error) || error.retry || error.code === "redis-refused";
}
