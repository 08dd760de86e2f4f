import { type Fault, type FaultCode, faultTable, isFault } from "@berth/protocol";
import { exitCodes } from "./exit-codes.ts";

/** Something the person at the terminal can do something about. Printed as a sentence and what to do, never with a stack. */
export class Complaint extends Error {
  override readonly name = "Complaint";
  readonly exitCode: number;
  readonly code: string | undefined;
  /** What to do about it, one line each. */
  readonly advice: readonly string[];

  constructor(
    message: string,
    more: { exitCode?: number; code?: string | undefined; advice?: readonly string[]; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.exitCode = more.exitCode ?? exitCodes.failed;
    this.code = more.code;
    this.advice = more.advice ?? [];
  }
}

/** The command line itself is wrong. */
export class UsageError extends Complaint {
  constructor(message: string, advice: readonly string[] = []) {
    super(message, { exitCode: exitCodes.usage, advice });
  }
}

/** An environment variable is wrong. */
export class ConfigError extends Complaint {
  constructor(problems: readonly string[]) {
    super(`the configuration cannot be used: ${problems.join("; ")}`, {
      exitCode: exitCodes.badConfig,
      advice: ["`berth help environment` lists every variable"],
    });
  }
}

/** What was asked for cannot be, whatever the state of the fleet is. */
const mistakes: ReadonlySet<FaultCode> = new Set([
  "invalid-job",
  "invalid-schedule",
  "invalid-profile",
  "invalid-tool",
  "not-redrivable",
]);
const unreachable = new Set(["redis-unreachable", "engine-unreachable"]);

/** The message for anything thrown, or undefined for a bug of Berth's own, which is shown with its stack. */
export function complaintOf(error: unknown): Complaint | undefined {
  if (error instanceof Complaint) return error;
  if (isFault(error)) return mistakes.has(error.code) ? new UsageError(error.message) : ofFault(error);
  if (isSystemError(error)) return new Complaint(systemText(error), { cause: error });
  return undefined;
}

export function exitCodeOfFault(code: string): number {
  if (code === "redis-unauthorized" || code === "redis-layout") return exitCodes.badConfig;
  return unreachable.has(code) ? exitCodes.unreachable : exitCodes.failed;
}

/** What the table of faults says to do about one. */
export function faultAdvice(code: FaultCode): string[] {
  return [faultTable[code].operator, `docs/faults.md says more about ${code}`];
}

/** For a job whose submission failed: the fleet may have accepted it. */
export function resubmitAdvice(jobId: string | undefined): string[] {
  return jobId === undefined
    ? []
    : [`the same command with --id ${jobId} runs the job once, whatever became of it`];
}

function ofFault(fault: Fault): Complaint {
  const { context } = fault;
  const jobId = "accepted" in context ? context.jobId : undefined;
  return new Complaint(fault.message, {
    exitCode: exitCodeOfFault(fault.code),
    code: fault.code,
    advice: [...resubmitAdvice(jobId), ...faultAdvice(fault.code)],
    cause: fault,
  });
}

/** A file here that cannot be read, a disk that is full, a program that is not installed. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error && "errno" in error;
}

const systemWords: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or directory here",
  EACCES: "this user may not open it",
  EISDIR: "it is a directory",
  ENOTDIR: "a part of it is not a directory",
  ENOSPC: "the disk here is full",
};

function systemText({ code = "", path, message }: NodeJS.ErrnoException): string {
  const words = systemWords[code];
  return path === undefined || words === undefined ? message : `${path}: ${words}`;
}
