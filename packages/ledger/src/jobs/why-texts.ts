import { type GivenNames, type Outcome, outcomeText, type SandboxKey } from "@berth/protocol";
import type { ShownState } from "./job-record.ts";

/** Reasons for programs. The sentences beside them name workers, hosts and what went wrong there. */
export const whyCodes = [
  "unknown",
  "ended",
  "due-later",
  "needs-approval",
  "running",
  "tenant-paused",
  "worker-gone",
  "sandbox-trouble",
  "session-busy",
  "about-to-begin",
  "sandbox-held",
  "no-worker",
  "host-offline",
  "no-engine",
  "tenant-full",
  "about-to-be-taken",
  "no-slot",
  "jobs-before",
] as const;
export type WhyCode = (typeof whyCodes)[number];

/** Why a job is where it is. */
export interface Why {
  readonly jobId: string;
  readonly state: "unknown" | ShownState;
  /** For people, the most important first. */
  readonly reasons: readonly string[];
  /** The same reasons in the same order, for programs. */
  readonly codes: readonly WhyCode[];
  readonly tenant?: string;
  readonly sandbox?: SandboxKey;
  /** Tenant, session and agent as they were given, where the ids are others. */
  readonly names?: GivenNames;
  /** Jobs of the sandbox that are before it. */
  readonly position?: number;
  readonly heldBy?: string;
  /** The pool whose workers may take its sandbox. */
  readonly pool?: string;
  /** The host that has the sandbox's files. */
  readonly home?: string;
  readonly dueAtMs?: number;
  /** For how long it has run. */
  readonly runningMs?: number;
  /** The running job of its session, behind which it waits. */
  readonly behind?: Behind;
  /** Of a job that has ended, as long as its events are kept. */
  readonly outcome?: Outcome;
  /** As a shell has it; absent where no command ran to an end. */
  readonly exitCode?: number;
}

export interface Behind {
  readonly jobId: string;
  readonly tenant: string;
  readonly session: string;
  /** Absent if an older version of Berth began it. */
  readonly runningMs?: number;
}

export interface Reason {
  readonly code: WhyCode;
  readonly text: string;
}

/** Replace sentences that name workers, hosts, or a worker's trouble, which another tenant may have caused. */
const wordsForTenants: Partial<Readonly<Record<WhyCode, string>>> = {
  running: "it runs",
  "sandbox-trouble": "its sandbox could not be started",
  "session-busy": "its session is busy with another job",
  "about-to-begin": "a worker has taken it and is about to begin it",
  "sandbox-held": "its sandbox is held by a worker",
  "no-worker": "no worker of its pool is there",
  "host-offline": "the host of its workspace is offline",
  "no-engine": "no worker that could take it can start a sandbox",
  "no-slot": "no worker that could take it has a free slot",
};

/**
 * The part that a tenant may see: nothing about the fleet's workers and hosts, or about other tenants' jobs. `shownId`: maps a job's id
 * to the id that the tenant knows.
 */
export function whyForTenant(
  { heldBy: _, home: __, behind, ...why }: Why,
  shownId = (jobId: string) => jobId,
): Why {
  const own =
    behind?.tenant === why.tenant ? behind && { ...behind, jobId: shownId(behind.jobId) } : undefined;
  const words = {
    ...wordsForTenants,
    ...(own ? { "session-busy": busyText(own) } : {}),
    ...(why.outcome ? { ended: endedText(why.outcome) } : {}),
  };
  const reasons = why.codes.map((code, index) => words[code] ?? why.reasons[index] ?? code);
  return { ...why, jobId: shownId(why.jobId), reasons, ...(own ? { behind: own } : {}) };
}

export function endedText(outcome: Outcome): string {
  return `it ended: ${outcomeText(outcome)}`;
}

export function busyText({ jobId, session, runningMs }: Behind): string {
  return `its session ${session} is busy: the job ${jobId} has run${forHowLong(runningMs)}`;
}

export function forHowLong(ms: number | undefined): string {
  if (ms === undefined) return "";
  if (ms < 1_000) return ` for ${ms} ms`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 120) return ` for ${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? ` for ${minutes} min` : ` for ${Math.floor(minutes / 60)} h`;
}
