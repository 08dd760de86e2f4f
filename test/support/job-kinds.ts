import { type JobSandbox, type RunContext, runRequest } from "@berth/jobs";
import {
  execLimits,
  isWorkspaceRequest,
  type JobRequestInput,
  type JobResult,
  jobRequest,
} from "@berth/protocol";
import type { Sandbox } from "@berth/sandbox";
import { expect } from "vitest";

/** Carries a request out on a sandbox, without a fleet. */
export function run(
  sandbox: JobSandbox,
  request: JobRequestInput,
  context: Partial<RunContext> = {},
): Promise<JobResult> {
  const parsed = jobRequest.parse(request);
  if (parsed.kind === "destroy" || parsed.kind === "stop" || isWorkspaceRequest(parsed))
    throw new Error("it is not carried out in a sandbox");
  return runRequest(parsed, {
    sandbox,
    signal: new AbortController().signal,
    limits: execLimits.parse({}),
    ...context,
  });
}

export const done = { kind: "done" };

export function refused(code: string, message: RegExp): object {
  return { kind: "refused", code, message: expect.stringMatching(message) };
}

export async function text(sandbox: Sandbox, path: string): Promise<string> {
  return Buffer.from((await sandbox.files.read(path)).bytes).toString();
}

export async function names(sandbox: Sandbox): Promise<string[]> {
  return (await sandbox.files.list("", { recursive: true })).items.map(({ path }) => path);
}
