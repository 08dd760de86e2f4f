import {
  type ExecRequestInput,
  type ExecResult,
  type JobResult,
  outputText,
  tightenLimits,
} from "@berth/protocol";
import { watchArtifacts } from "../artifacts/collect.ts";
import type { RequestOf, RunContext } from "../run-context.ts";

export async function runExec(request: RequestOf<"exec">, context: RunContext): Promise<JobResult> {
  const { kind: _kind, artifacts: globs = [], ...command } = request;
  // Without globs nothing is looked at: a command takes about a millisecond, and so does a look.
  const cwd = globs.length > 0 ? command.cwd : undefined;
  const collect = await watchArtifacts({ globs, cwd }, context);
  return collect(commandResult(await execute(command, context)));
}

/** Runs a command within the job's limits, its output passed on as it comes. */
export function execute(command: ExecRequestInput, context: RunContext): Promise<ExecResult> {
  const { sandbox, signal, onOutput, limits } = context;
  return sandbox.exec(
    { ...command, limits: tightenLimits(limits, command.limits ?? {}) },
    { signal, ...(onOutput ? { onOutput: ({ stream, bytes }) => onOutput(stream, bytes) } : {}) },
  );
}

export function commandResult(result: ExecResult): JobResult {
  const { outcome, output, wallMs, cpuMs } = result;
  return {
    outcome,
    value: {
      stdout: outputText(output, "stdout"),
      stderr: outputText(output, "stderr"),
      cutBytes: output.cutBytes,
    },
    timing: { wallMs, cpuMs },
  };
}
