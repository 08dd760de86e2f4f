import {
  type ExecRequest,
  type ExecRequestInput,
  type ExecResult,
  type JobResult,
  outputText,
  type StoredResult,
  shownOutput,
  tightenLimits,
} from "@berth/protocol";
import { watchArtifacts } from "../artifacts/collect.ts";
import type { RequestOf, RunContext } from "../run-context.ts";

export async function runExec(request: RequestOf<"exec">, context: RunContext): Promise<JobResult> {
  const { kind: _kind, artifacts: globs = [], newFiles: anywhere, ...command } = request;
  // Without globs, list nothing: listing takes about a millisecond, as long as a command.
  const cwd = globs.length > 0 || anywhere ? command.cwd : undefined;
  const collect = await watchArtifacts({ globs, cwd, anywhere }, context);
  return collect(await runCommand(command, context));
}

/** Runs a command within the job's limits and passes its output on as it arrives. */
export async function runCommand(
  command: ExecRequestInput & Pick<ExecRequest, "limits">,
  context: RunContext,
): Promise<StoredResult> {
  const { sandbox, signal, onOutput } = context;
  const limits = tightenLimits(context.limits, command.limits ?? {});
  const result = await sandbox.exec(
    { ...command, limits },
    { signal, ...(onOutput ? { onOutput: ({ stream, bytes }) => onOutput(stream, bytes) } : {}) },
  );
  return commandResult(result, limits.shownBytes);
}

function commandResult(
  { outcome, output, wallMs, cpuMs, maxRssBytes }: ExecResult,
  shownBytes: number,
): StoredResult {
  const stdout = outputText(output, "stdout");
  const stderr = outputText(output, "stderr");
  const isWhole = output.totalBytes <= shownBytes && output.cutBytes === 0;
  const isOneStream = stdout === "" || stderr === "";
  return {
    outcome,
    value: {
      ...{ stdout, stderr, cutBytes: output.cutBytes },
      ...(isWhole && isOneStream ? {} : { shown: shownOutput(output, shownBytes) }),
    },
    timing: { wallMs, cpuMs },
    usage: { outBytes: output.totalBytes, peakMemoryBytes: maxRssBytes },
  };
}
