import { byteSize, quotaText } from "./agent-text.ts";
import { assertNever, type Outcome } from "./outcome.ts";
import { signalName } from "./signals.ts";

/** A job's outcome as text for people: `exited 3`, `timed out after 30 s`, `lost: its worker died`. */
export function outcomeText(outcome: Outcome): string {
  switch (outcome.kind) {
    case "done":
      return "done";
    case "exited":
      return `exited ${outcome.code}`;
    case "signalled":
      return `killed by ${signalName(outcome.signal)}`;
    case "timed-out":
      return `timed out after ${Number((outcome.afterMs / 1_000).toFixed(3))} s`;
    case "out-of-memory":
      return `out of memory: the limit is ${byteSize(outcome.limitBytes)}`;
    case "quota-exceeded":
      return `stopped: ${quotaText(outcome)}`;
    case "output-limit":
      return `stopped: more than ${byteSize(outcome.limitBytes)} of output`;
    case "cancelled":
      return `cancelled: ${outcome.reason}`;
    case "refused":
      return `refused: ${outcome.message}`;
    case "lost":
      return `lost: ${outcome.message}`;
    default:
      return assertNever(outcome);
  }
}
