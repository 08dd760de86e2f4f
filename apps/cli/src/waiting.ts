import type { Context } from "./context.ts";
import type { DoorJob } from "./door.ts";
import { printable } from "./terminal/printable.ts";

const quietMs = 2_000;

/** Prints once, for a person, why the job has not started. Prints nothing with --json. */
export function printWaiting({ door, terminal }: Context, job: DoorJob): { stop(): void } {
  if (terminal.noteColumns === undefined) return { stop() {} };
  let stopped = false;
  const printReason = async () => {
    const { state, reasons } = await (await door()).why(job.id);
    if (!stopped && (state === "waiting" || state === "scheduled") && reasons[0] !== undefined)
      terminal.note(`berth: waiting: ${printable(reasons[0])}`);
  };
  const timer = setTimeout(() => void printReason().catch(() => {}), quietMs);
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
