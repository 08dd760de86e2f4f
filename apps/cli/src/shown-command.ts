import { exitCodeOf, type JobResult } from "@berth/protocol";
import type { Context } from "./context.ts";
import type { DoorJob } from "./door.ts";
import { retryText } from "./retry-text.ts";
import { outcomeText } from "./run-job.ts";
import { printable } from "./terminal/printable.ts";

/** Prints output as it arrives and returns the result. */
export async function shownOutput({ terminal, interrupts }: Context, job: DoorJob): Promise<JobResult> {
  if (terminal.json) return job.result();
  for await (const event of job.events()) {
    if (event.type === "finished") return event.result;
    if (event.type === "stdout" || event.type === "stderr") await terminal.write(event.bytes, event.type);
    else if (event.type === "retrying") terminal.note(`berth: ${printable(retryText(event))}`);
    else if (event.type === "started" && event.attempt > 1)
      // A gateway does not name workers to tenants.
      terminal.note(`berth: run ${event.attempt} begins${event.worker ? ` on ${event.worker}` : ""}`);
  }
  // The events stopped without an end, so the connection was closed.
  if (interrupts.interrupted) throw interrupts.signal().reason;
  return job.result();
}

/** Prints what remains to be reported of a finished command. `block`: also its output. */
export async function printEnd(
  { terminal }: Context,
  job: DoorJob,
  result: JobResult,
  block: boolean,
): Promise<void> {
  const { outcome, value, timing, usage, text = "" } = result;
  if (terminal.json) {
    return terminal.answer(
      { id: job.id, exitCode: exitCodeOf(outcome) ?? null, outcome, value, timing, usage, text },
      () => "",
    );
  }
  const ended = outcomeText(outcome);
  if (block) await terminal.line(text);
  else if (ended !== "") terminal.note(`berth: ${printable(ended)}`);
  if (value.cutBytes)
    terminal.note(
      `berth: ${value.cutBytes} bytes of output were not kept; send it to a file (> out.log) and fetch that`,
    );
  for (const { path, size, id } of value.artifacts ?? [])
    terminal.note(`berth: artifact ${printable(path)}, ${size} bytes, ${id}`);
  for (const { path, reason } of value.artifactsRefused ?? [])
    terminal.note(`berth: not kept: ${printable(path)}: ${printable(reason)}`);
}
