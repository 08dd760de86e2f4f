import type { ValueOf } from "@berth/protocol";
import { workspaceName } from "../files/workspace-name.ts";
import type { RequestOf, RunContext } from "../run-context.ts";

export async function runMove(
  { from, to, overwrite }: RequestOf<"move">,
  { sandbox, signal }: RunContext,
): Promise<ValueOf<"move">> {
  await sandbox.files.move(from, to, { overwrite, parents: true, signal });
  return {};
}

/** Also removes what the conversation persisted there, even if the workspace has no such file. */
export async function runRemove(
  { path, recursive, missingOk }: RequestOf<"remove">,
  { sandbox, signal, artifacts }: RunContext,
): Promise<ValueOf<"remove">> {
  const name = workspaceName(path);
  const persisted = (await artifacts?.persistedBelow(name)) ?? [];
  const only = persisted.filter((ref) => recursive || ref.path === name);
  const options = { recursive, missingOk: missingOk || only.length > 0, signal };
  const count = await sandbox.files.remove(path, options);
  if (!artifacts || only.length === 0) return { count };
  return { count, persisted: await artifacts.forget(name, { recursive }) };
}
