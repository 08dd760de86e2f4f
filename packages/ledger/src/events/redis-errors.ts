import { setTimeout as sleep } from "node:timers/promises";
import { isFault, mayPass } from "@berth/protocol";

/** Answers of a Redis that will take the same command later. The last four: of a cluster whose slot moves to another node. */
const passing =
  /^(LOADING|BUSY|MASTERDOWN|READONLY|UNBLOCKED|CLUSTERDOWN|NOREPLICAS|MISCONF|OOM|TRYAGAIN|MOVED|ASK|ERR Script attempted to (access a non local key|execute))\b/;

/** Whether trying again can help: Redis is away, coming up, or full. Anything else it would refuse for ever. */
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
