import { assertNever, type Outcome, type SandboxProfile } from "@berth/protocol";
import type { LinkExit } from "./link.ts";
import type { QuotaExceeded } from "./quota-guard.ts";

const sigkill = 9;
/** The signal that the kernel sends to a command that writes although the workspace was full when it started. */
const sigxfsz = 25;

export interface OutcomeFacts {
  readonly limits: SandboxProfile["limits"];
  readonly timeoutMs: number;
  readonly program: string;
  readonly full: QuotaExceeded | undefined;
}

/** Why the worker stopped a command. */
export type Stop = Extract<Outcome, { kind: "quota-exceeded" | "output-limit" | "cancelled" }>;

/**
 * The outcome of a command. The reason for which the worker or init stopped it wins over the exit code or signal; and the kernel's count of
 * out-of-memory kills wins over the signal with which the kernel delivers them.
 */
export function outcomeOf(
  exit: Exclude<LinkExit, { kind: "broken" }>,
  stop: Stop | undefined,
  { limits, timeoutMs, program, full }: OutcomeFacts,
): Outcome {
  if (exit.kind === "refused")
    return { kind: "refused", code: exit.code, message: refusedText(exit, program) };
  switch (exit.reason) {
    case "timeout":
      return { kind: "timed-out", afterMs: timeoutMs };
    case "watchdog":
      return { kind: "lost", message: "the worker's lease ended while the command ran, so init killed it" };
    case "collateral":
      return {
        kind: "cancelled",
        reason: "everything in the sandbox was killed, to end another command that kept forking",
      };
    case "hidden":
      return {
        kind: "cancelled",
        reason:
          "it ran a program that its user may execute but not read, which hides from the quota what the program has open; make the program readable",
      };
    case "kill":
      if (stop) return stop;
      return { kind: "cancelled", reason: "killed" };
    case "itself":
      break;
    default:
      return assertNever(exit.reason);
  }
  if (full && (exit.kind === "signalled" ? exit.value : exit.value - 128) === sigxfsz) return full;
  if (exit.oomKills > 0 && (exit.kind === "signalled" ? exit.value === sigkill : exit.value !== 0)) {
    return { kind: "out-of-memory", limitBytes: limits.memoryBytes };
  }
  // It ended by itself while the worker stopped it. The caller gets the reason of the stop, unless the command succeeded.
  if (stop && !(exit.kind === "exited" && exit.value === 0)) return stop;
  return exit.kind === "exited"
    ? { kind: "exited", code: exit.value }
    : { kind: "signalled", signal: exit.value };
}

function refusedText({ code, message }: { code: string; message: string }, program: string): string {
  switch (code) {
    case "command-not-found":
      return `command not found: ${program}`;
    case "not-executable":
      return `not executable: ${program}`;
    case "fork-failed":
      return "no process could be started: the sandbox has used up its process limit; end what runs in the background";
    case "too-long":
      return "the command line and its environment are too long; write the input to a file";
    case "busy":
      return "too many commands run in this sandbox at once";
    default:
      return message === "" ? code : message;
  }
}
