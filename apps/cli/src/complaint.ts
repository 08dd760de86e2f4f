import { type Fault, type FaultCode, faultTable, isFault } from "@berth/protocol";
import { exitCodes } from "./exit-codes.ts";

/** An error that the person at the terminal can fix. Printed as a sentence and advice, never with a stack. */
export class Complaint extends Error {
  override readonly name = "Complaint";
  readonly exitCode: number;
  readonly code: string | undefined;
  /** What to do, one line each. */
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

/** The command line is wrong. */
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

/** The request cannot succeed in any state of the fleet. */
const mistakes: ReadonlySet<FaultCode> = new Set([
  "invalid-job",
  "invalid-schedule",
  "invalid-profile",
  "invalid-tool",
  "not-redrivable",
]);
const unreachable = new Set(["redis-unreachable", "engine-unreachable"]);

/** Turns an error into a message. Undefined for a bug in Berth, which is printed with its stack. */
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

/** The advice of the fault table. */
export function faultAdvice(code: FaultCode): string[] {
  return [faultTable[code].operator, `docs/faults.md explains ${code}`];
}

/** For a submission that failed on the way: the fleet may have accepted the job. */
export function resubmitAdvice(jobId: string | undefined): string[] {
  return jobId === undefined
    ? []
    : [`repeat the command with --id ${jobId}: the job runs once, even if the fleet accepted it already`];
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

/** A local file that cannot be read, a full disk, a program that is not installed. */
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
