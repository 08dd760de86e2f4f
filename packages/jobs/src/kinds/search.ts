import { FileRefusal, type ValueOf } from "@berth/protocol";
import { workspaceName } from "../files/workspace-name.ts";
import type { RequestOf, RunContext } from "../run-context.ts";

export async function runStat(
  { path, hash }: RequestOf<"stat">,
  { sandbox, signal }: RunContext,
): Promise<ValueOf<"stat">> {
  const { sha256, ...entry } = await sandbox.files.stat(path, { hash, signal });
  return {
    entries: [{ ...entry, path: workspaceName(path) }],
    size: entry.size,
    ...(sha256 === undefined ? {} : { sha256 }),
  };
}

/** The workspace's, and beside it what the conversation has persisted there. */
export async function runList(
  { path, recursive, maxItems }: RequestOf<"list">,
  { sandbox, signal, artifacts }: RunContext,
): Promise<ValueOf<"list">> {
  const persisted = ((await artifacts?.persistedBelow(workspaceName(path))) ?? []).slice(0, maxItems);
  const { items, truncated } = await sandbox.files
    .list(path, { recursive, maxItems, signal })
    .catch((error: unknown) => {
      if (!(error instanceof FileRefusal) || error.code !== "not-found" || persisted.length === 0)
        throw error;
      return { items: [], truncated: false };
    });
  return { entries: items, count: items.length, truncated, ...(persisted.length > 0 ? { persisted } : {}) };
}

export async function runGlob(
  { patterns, base, dot, maxItems }: RequestOf<"glob">,
  { sandbox, signal }: RunContext,
): Promise<ValueOf<"glob">> {
  const { items, truncated } = await sandbox.files.glob(patterns, { base, dot, maxItems, signal });
  return { entries: items, count: items.length, truncated };
}

export async function runGrep(
  { pattern, ...options }: RequestOf<"grep">,
  { sandbox, signal }: RunContext,
): Promise<ValueOf<"grep">> {
  const { path, regex, ignoreCase, include, maxItems } = options;
  const found = await sandbox.files.grep(pattern, { path, regex, ignoreCase, include, maxItems, signal });
  return { matches: found.items, count: found.items.length, truncated: found.truncated };
}
