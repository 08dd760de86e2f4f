import { createHash } from "node:crypto";
import type { ToolStore } from "@berth/ledger";
import {
  Fault,
  type Job,
  type JobRequest,
  type PreparedTool,
  type PrepareTool,
  problemsOf,
  type ToolDefinition,
  type ToolRequest,
  toolArgumentsSchema,
  toolCommand,
  toolRefusal,
} from "@berth/protocol";

/** The custom tools of one job. It runs the definitions that were checked, even if they change meanwhile. */
export interface JobTools {
  /** Throws `tool-refused` if the job may not call the tool, or its arguments do not fit. */
  readonly prepare: PrepareTool;
  /** A digest of everything that these calls run; empty without any. */
  readonly digest: string;
}

export const noTools: JobTools = {
  prepare: ({ name }) => {
    throw new Fault("tool-refused", { tool: name, problem: "there is no such tool" });
  },
  digest: "",
};

/** `profile`: the name of the job's profile. Asks Redis only when the job uses a tool. */
export async function toolsOf(
  { tenant, agent, request }: Pick<Job, "tenant" | "agent" | "request">,
  profile: string,
  store: Pick<ToolStore, "definitions">,
): Promise<JobTools> {
  const calls = callsIn(request);
  if (calls.length === 0) return noTools;
  const definitions = await store.definitions([...new Set(calls.map(({ name }) => name))]);
  const job = { tenant, agent, profile };
  const prepare = (call: ToolRequest) => prepared(call, definitions.get(call.name), job);
  const digest = createHash("sha256")
    .update(JSON.stringify(calls.map((call) => prepare(call).command)))
    .digest("base64url");
  return { prepare, digest };
}

function callsIn(request: JobRequest): readonly ToolRequest[] {
  if (request.kind === "tool") return [request];
  return request.kind === "steps" ? request.steps.filter((one) => one.kind === "tool") : [];
}

function prepared(
  { name: tool, args }: ToolRequest,
  definition: ToolDefinition | undefined,
  job: Parameters<typeof toolRefusal>[1],
): PreparedTool {
  const problem = definition ? toolRefusal(definition, job) : "there is no such tool";
  if (!definition || problem !== undefined) throw new Fault("tool-refused", { tool, problem: problem ?? "" });
  const parsed = toolArgumentsSchema(definition).safeParse(args);
  if (!parsed.success)
    throw new Fault("tool-refused", { tool, problem: problemsOf(parsed.error).join("; ") });
  return toolCommand(definition, parsed.data);
}
