import {
  type ArtifactRef,
  type ExecLimits,
  Fault,
  type JobRequest,
  type JobValue,
  type OutputStream,
  type PreparedTool,
  type ToolRequest,
} from "@berth/protocol";
import type { Sandbox } from "@berth/sandbox/port";
import type { ArtifactsPort } from "./artifacts/artifacts-port.ts";
import type { DownloadPort } from "./kinds/fetch.ts";

/** What a job may use of a sandbox. Its life is its holder's. */
export type JobSandbox = Pick<Sandbox, "exec" | "files">;

export interface RunContext {
  readonly sandbox: JobSandbox;
  /** Ends the job as cancelled. */
  readonly signal: AbortSignal;
  /** Sees a command's output as it comes. What it returns is awaited before the command may send more. */
  readonly onOutput?: ((stream: OutputStream, bytes: Uint8Array) => void | Promise<void>) | undefined;
  /** The job's own. Absent: nothing is kept, and the result lists the files as refused. */
  readonly artifacts?: ArtifactsPort | undefined;
  /** Learns of each artifact when it is kept. */
  readonly onArtifact?: ((artifact: ArtifactRef) => void | Promise<void>) | undefined;
  /** By the sandbox's egress rules. Absent: nothing is fetched, and the result has the reason. */
  readonly download?: DownloadPort | undefined;
  /** What a call of a custom tool runs. Absent: there are none, and the call is refused. */
  readonly tool?: ((call: ToolRequest) => PreparedTool["command"]) | undefined;
  /** A request may only tighten these. */
  readonly limits: ExecLimits;
}

export type RequestOf<K extends JobRequest["kind"]> = Extract<JobRequest, { kind: K }>;

/**
 * The job cannot be done as it was asked, for a reason that no file operation has: no match, a bad patch. `value` is what
 * there is to tell all the same, such as how much had been done.
 */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly code: string;
  readonly value: JobValue;

  constructor(code: string, message: string, value: JobValue = {}) {
    super(message);
    this.code = code;
    this.value = value;
  }
}

/** For loops that wait for nothing which would notice the signal. */
export function throwIfAborted(signal: AbortSignal, operation: string): void {
  if (signal.aborted) throw new Fault("aborted", { operation }, { cause: signal.reason });
}

const shownProblems = 20;

/** Every problem in one sentence, as long as there are not hundreds. */
export function problemText(problems: readonly string[]): string {
  const rest = problems.length - shownProblems;
  return [...problems.slice(0, shownProblems), ...(rest > 0 ? [`and ${rest} more`] : [])].join("; ");
}
