import { isFault, type Outcome } from "@berth/protocol";
import { endFault } from "../init/connection.ts";
import type { LinkEnd } from "../link.ts";
import type { StartRequest } from "../port.ts";
import type { Containers } from "./containers.ts";

export interface LostCommand {
  readonly request: StartRequest;
  readonly containers: Pick<Containers, "find">;
  readonly containerId: string;
  /** Why the worker ended everything in the container, if it did. */
  readonly recycled: string | undefined;
}

/** The outcome of a command whose link broke. Throws when another holder has the sandbox. */
export async function lostOutcome(
  end: LinkEnd,
  { request: { key: sandboxKey, epoch, profile }, containers, containerId, recycled }: LostCommand,
): Promise<Outcome> {
  if (end.why === "fenced") throw endFault(end, { sandboxKey, epoch });
  if (recycled !== undefined)
    return { kind: "lost", message: `everything in the sandbox was ended: ${recycled}` };
  if (end.why === "stream-ended") {
    const found = await containers.find(containerId, {}).catch(() => undefined);
    if (found?.oomKilled) return { kind: "out-of-memory", limitBytes: profile.limits.memoryBytes };
  }
  const cause = endFault(end, { sandboxKey, epoch });
  const why = isFault(cause, "sandbox-start-failed") ? "its container died" : cause.message;
  return {
    kind: "lost",
    message: `the sandbox was lost while the command ran (${why}); it may have run in part`,
  };
}
