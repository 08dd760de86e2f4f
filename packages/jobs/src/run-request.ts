import {
  abortReason,
  assertNever,
  FileRefusal,
  isFault,
  type JobResult,
  type JobValue,
  type Outcome,
  type SandboxRequest,
} from "@berth/protocol";
import { runArchiveIn } from "./kinds/archive-in.ts";
import { runArchiveOut } from "./kinds/archive-out.ts";
import { runCode } from "./kinds/code.ts";
import { runCopy } from "./kinds/copy.ts";
import { runEdit } from "./kinds/edit.ts";
import { runExec } from "./kinds/exec.ts";
import { runFetch } from "./kinds/fetch.ts";
import { runMove, runRemove } from "./kinds/move-remove.ts";
import { runPatch } from "./kinds/patch.ts";
import { runRead } from "./kinds/read.ts";
import { runGlob, runGrep, runList, runStat } from "./kinds/search.ts";
import { runSteps } from "./kinds/steps.ts";
import { runTool } from "./kinds/tool.ts";
import { runWrite } from "./kinds/write.ts";
import { measured } from "./measured.ts";
import { Refusal, type RequestOf, type RunContext } from "./run-context.ts";

/**
 * Runs one request. Mistakes of the request or its command, and aborts, are outcomes; only faults of ours are
 * thrown.
 */
export async function runRequest(request: SandboxRequest, context: RunContext): Promise<JobResult> {
  return measured(await run(request, context));
}

async function run(request: SandboxRequest, context: RunContext): Promise<JobResult> {
  const startedMs = performance.now();
  const ended = (outcome: Outcome, value: JobValue): JobResult => ({
    outcome,
    value,
    timing: { wallMs: performance.now() - startedMs, cpuMs: 0 },
  });
  const cancelled = () => ended({ kind: "cancelled", reason: abortReason(context.signal) }, {});
  if (context.signal.aborted) return cancelled();
  try {
    switch (request.kind) {
      case "exec":
        return await runExec(request, context);
      case "code":
        return await runCode(request, context);
      case "tool":
        return await runTool(request, context);
      case "steps":
        return await runSteps(request, context, runRequest);
      default:
        return ended({ kind: "done" }, await runFileKind(request, context));
    }
  } catch (error) {
    if (error instanceof Refusal || error instanceof FileRefusal) {
      const value = error instanceof Refusal ? error.value : {};
      return ended({ kind: "refused", code: error.code, message: error.message }, value);
    }
    if (context.signal.aborted && isFault(error, "aborted")) return cancelled();
    throw error;
  }
}

type FileKind = Exclude<SandboxRequest["kind"], "exec" | "code" | "tool" | "steps">;

function runFileKind(request: RequestOf<FileKind>, context: RunContext): Promise<JobValue> {
  switch (request.kind) {
    case "write":
      return runWrite(request, context);
    case "read":
      return runRead(request, context);
    case "stat":
      return runStat(request, context);
    case "list":
      return runList(request, context);
    case "remove":
      return runRemove(request, context);
    case "move":
      return runMove(request, context);
    case "edit":
      return runEdit(request, context);
    case "patch":
      return runPatch(request, context);
    case "grep":
      return runGrep(request, context);
    case "glob":
      return runGlob(request, context);
    case "copy":
      return runCopy(request, context);
    case "fetch":
      return runFetch(request, context);
    case "archive":
      return request.direction === "in" ? runArchiveIn(request, context) : runArchiveOut(request, context);
    default:
      return assertNever(request);
  }
}
