import type { JobValue } from "@berth/protocol";
import type { RequestOf, RunContext } from "./run-context.ts";

export async function runMove(
  { from, to, overwrite }: RequestOf<"move">,
  { sandbox, signal }: RunContext,
): Promise<JobValue> {
  await sandbox.files.move(from, to, { overwrite, parents: true, signal });
  return {};
}

export async function runRemove(
  { path, recursive, missingOk }: RequestOf<"remove">,
  { sandbox, signal }: RunContext,
): Promise<JobValue> {
  return { count: await sandbox.files.remove(path, { recursive, missingOk, signal }) };
}
