import { FileRefusal, sharedPath, type ValueOf } from "@berth/protocol";
import { workspaceName } from "../files/workspace-name.ts";
import type { RequestOf, RunContext } from "../run-context.ts";

export async function runStat(
  { path, hash }: RequestOf<"stat">,
  { sandbox, signal }: RunContext,
): Promise<ValueOf<"stat">> {
  const { sha256, ...entry } = await sandbox.files.stat(path, { hash, signal });
  return {
    entries: [{ ...entry, path: sharedPath(path) ? path : workspaceName(path) }],
    size: entry.size,
    ...(sha256 === undefined ? {} : { sha256 }),
  };
}

/** Searches the workspace, and the conversation's persisted files. */
export async function runList(
  { path, recursive, maxItems }: RequestOf<"list">,
  { sandbox, signal, artifacts }: RunContext,
): Promise<ValueOf<"list">> {
  const shared = sharedPath(path);
  if (shared) return await listShared(path, shared.directory, { recursive, maxItems, signal, sandbox });
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

/** Lists a shared directory. Its paths are absolute, since relative ones are the workspace's. */
async function listShared(
  path: string,
  directory: string,
  {
    sandbox,
    ...options
  }: Pick<RequestOf<"list">, "recursive" | "maxItems"> & Pick<RunContext, "sandbox" | "signal">,
): Promise<ValueOf<"list">> {
  const { items, truncated } = await sandbox.files.list(path, options);
  const entries = items.map(absoluteIn(directory));
  return { entries, count: entries.length, truncated };
}

/** Makes the paths of items in a shared directory absolute. */
function absoluteIn(directory: string | undefined): <T extends { readonly path: string }>(item: T) => T {
  return (item) => (directory === undefined ? item : { ...item, path: `${directory}/${item.path}` });
}

export async function runGlob(
  { patterns, base, dot, maxItems }: RequestOf<"glob">,
  { sandbox, signal }: RunContext,
): Promise<ValueOf<"glob">> {
  const { items, truncated } = await sandbox.files.glob(patterns, { base, dot, maxItems, signal });
  const entries = items.map(absoluteIn(sharedPath(base)?.directory));
  return { entries, count: entries.length, truncated };
}

export async function runGrep(
  { pattern, ...options }: RequestOf<"grep">,
  { sandbox, signal }: RunContext,
): Promise<ValueOf<"grep">> {
  const { path, regex, ignoreCase, include, maxItems } = options;
  const found = await sandbox.files.grep(pattern, { path, regex, ignoreCase, include, maxItems, signal });
  const matches = found.items.map(absoluteIn(sharedPath(path)?.directory));
  return { matches, count: matches.length, truncated: found.truncated };
}
