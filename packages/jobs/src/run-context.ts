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

/** A job's access to a sandbox. Its holder decides when it ends. */
export type JobSandbox = Pick<Sandbox, "exec" | "files">;

export interface RunContext {
  readonly sandbox: JobSandbox;
  /** Ends the job as cancelled. */
  readonly signal: AbortSignal;
  /** Receives a command's output as it arrives. The command may send more only after the returned promise resolves. */
  readonly onOutput?: ((stream: OutputStream, bytes: Uint8Array) => void | Promise<void>) | undefined;
  /** The job's artifacts. Absent: nothing is kept, and the result lists the files as refused. */
  readonly artifacts?: ArtifactsPort | undefined;
  /** Called with each artifact when it is kept. */
  readonly onArtifact?: ((artifact: ArtifactRef) => void | Promise<void>) | undefined;
  /** Downloads within the sandbox's egress rules. Absent: nothing is fetched, and the result has the reason. */
  readonly download?: DownloadPort | undefined;
  /** Resolves a call of a custom tool. Absent: such calls are refused. */
  readonly tool?: ((call: ToolRequest) => PreparedTool["command"]) | undefined;
  /** A request may only tighten these. */
  readonly limits: ExecLimits;
}

export type RequestOf<K extends JobRequest["kind"]> = Extract<JobRequest, { kind: K }>;

/**
 * The job cannot be done as requested, for a reason that is no `FileRefusal`: no match, a bad patch. `value` holds partial results,
 * such as how much was done.
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

/** Call it in loops that never wait, since nothing in them notices the signal. */
export function throwIfAborted(signal: AbortSignal, operation: string): void {
  if (signal.aborted) throw new Fault("aborted", { operation }, { cause: signal.reason });
}

const shownProblems = 20;

/** Joins the first `shownProblems` problems, and the number of the others. */
export function problemText(problems: readonly string[]): string {
  const rest = problems.length - shownProblems;
  return [...problems.slice(0, shownProblems), ...(rest > 0 ? [`and ${rest} more`] : [])].join("; ");
}
