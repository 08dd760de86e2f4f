import type { ExecResult, Outcome } from "@berth/protocol";
import type { LinkExit } from "./link.ts";
import { HeadTailBuffer } from "./output/head-tail-buffer.ts";

/** The result of a command that never ran. */
export function unstarted(outcome: Outcome): ExecResult {
  return { outcome, output: new HeadTailBuffer(0).finish(), ...measuresOf(undefined) };
}

/** The time and memory that a command used; zeros if its end is not known. */
export function measuresOf(exit: LinkExit | undefined): Omit<ExecResult, "outcome" | "output"> {
  if (exit === undefined || exit.kind === "broken" || exit.kind === "refused") {
    return { wallMs: 0, cpuMs: 0, maxRssBytes: 0, oomKills: 0, backgroundProcesses: 0 };
  }
  const { wallMs, cpuMs, maxRssBytes, oomKills, background } = exit;
  return { wallMs, cpuMs, maxRssBytes, oomKills, backgroundProcesses: background };
}
