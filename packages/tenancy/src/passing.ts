import { isFault } from "@berth/protocol";

/** Whether the same call may succeed a moment later. Redis refuses for reasons that pass, too: no memory, a script that takes long. */
export function mayPass(error: unknown): boolean {
  return !isFault(error) || error.retry || error.code === "redis-refused";
}
