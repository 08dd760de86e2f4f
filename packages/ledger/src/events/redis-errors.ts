import { setTimeout as sleep } from "node:timers/promises";
import { isFault, mayPass } from "@berth/protocol";

/** Errors after which Redis may accept the same command later. The last four come from a cluster whose slot moves to another node. */
const passing =
  /^(LOADING|BUSY|MASTERDOWN|READONLY|UNBLOCKED|CLUSTERDOWN|NOREPLICAS|MISCONF|OOM|TRYAGAIN|MOVED|ASK|ERR Script attempted to (access a non local key|execute))\b/;

/** Whether a retry can help: Redis is away, starting, or full. It would refuse anything else again. */
export function passes(error: unknown): boolean {
  if (isFault(error))
    return mayPass(error) && (error.retry || (isRefusal(error.cause) && passes(error.cause)));
  return !isRefusal(error) || passing.test(error.message);
}

/** Redis answered, and refused. */
function isRefusal(error: unknown): error is Error {
  return error instanceof Error && error.name === "ReplyError";
}

/** Pause between tries; the signal ends it. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}
