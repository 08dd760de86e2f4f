import {
  isSuccess,
  type JobResult,
  type JobValue,
  type Outcome,
  type Step,
  tightenLimits,
} from "@berth/protocol";
import type { RequestOf, RunContext } from "../run-context.ts";

/** A thousand steps may each read a megabyte; one result must not carry all of it. */
const maxResultBytes = 8 * 1024 * 1024;
/** Output kept of a command when the steps before it left no room. */
const minKeptBytes = 1024;

export type RunStep = (step: Step, context: RunContext) => Promise<JobResult>;

/** Runs steps in order. The whole ends as its first failing step did. */
export async function runSteps(
  { steps, onFailure }: RequestOf<"steps">,
  context: RunContext,
  run: RunStep,
): Promise<JobResult> {
  const startedMs = performance.now();
  const results: JobResult[] = [];
  let failed: Outcome | undefined;
  let roomBytes = maxResultBytes;
  let cpuMs = 0;
  for (const step of steps) {
    const room = Math.max(minKeptBytes, roomBytes);
    const limits = tightenLimits(context.limits, { keptBytes: room, shownBytes: room });
    const result = fitting(await run(step, { ...context, limits }), roomBytes);
    results.push(result);
    roomBytes -= valueBytes(result.value);
    cpuMs += result.timing.cpuMs;
    if (isSuccess(result.outcome)) continue;
    failed ??= result.outcome;
    if (onFailure === "stop" || context.signal.aborted) break;
  }
  return {
    outcome: failed ?? { kind: "done" },
    value: { steps: results },
    timing: { wallMs: performance.now() - startedMs, cpuMs },
  };
}

/** A read can be left out of the result and repeated; a command's output was already cut to fit. */
function fitting(result: JobResult, roomBytes: number): JobResult {
  if (valueBytes(result.value) <= Math.max(roomBytes, minKeptBytes)) return result;
  if (result.value.stdout !== undefined) {
    const { artifactsRefused: _, ...value } = result.value;
    return { ...result, value };
  }
  return {
    ...result,
    outcome: {
      kind: "refused",
      code: "too-large",
      message: `what this step found does not fit into one result beside the steps before it (${maxResultBytes} bytes in all); make it a job of its own`,
    },
    value: {},
  };
}

function valueBytes({ stdout, stderr, content, ...rest }: JobValue): number {
  const texts = (stdout?.length ?? 0) + (stderr?.length ?? 0) + (content?.length ?? 0);
  return texts + JSON.stringify(rest).length;
}
