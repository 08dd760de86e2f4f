import type { JobResult } from "@berth/protocol";
import { Refusal, type RequestOf, type RunContext } from "../run-context.ts";
import { runExec } from "./exec.ts";

/** A command that the operator defined, with the arguments of this call. */
export async function runTool(call: RequestOf<"tool">, context: RunContext): Promise<JobResult> {
  const { tool } = context;
  if (!tool) throw new Refusal("tool-refused", `the tool ${call.name}: there are no custom tools here`);
  return await runExec({ kind: "exec", background: "keep", ...tool(call) }, context);
}
