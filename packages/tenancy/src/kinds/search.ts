import type { JobValue } from "@berth/protocol";
import type { RequestOf, RunContext } from "./run-context.ts";
import { workspaceName } from "./workspace-name.ts";

export async function runStat(
  { path, hash }: RequestOf<"stat">,
  { sandbox, signal }: RunContext,
): Promise<JobValue> {
  const { sha256, ...entry } = await sandbox.files.stat(path, { hash, signal });
  return {
    entries: [{ ...entry, path: workspaceName(path) }],
    size: entry.size,
    ...(sha256 === undefined ? {} : { sha256 }),
  };
}

export async function runList(
  { path, recursive, maxItems }: RequestOf<"list">,
  { sandbox, signal }: RunContext,
): Promise<JobValue> {
  const { items, truncated } = await sandbox.files.list(path, { recursive, maxItems, signal });
  return { entries: items, count: items.length, truncated };
}

export async function runGlob(
  { patterns, base, dot, maxItems }: RequestOf<"glob">,
  { sandbox, signal }: RunContext,
): Promise<JobValue> {
  const { items, truncated } = await sandbox.files.glob(patterns, { base, dot, maxItems, signal });
  return { entries: items, count: items.length, truncated };
}

export async function runGrep(
  { pattern, ...options }: RequestOf<"grep">,
  { sandbox, signal }: RunContext,
): Promise<JobValue> {
  const { path, regex, ignoreCase, include, maxItems } = options;
  const found = await sandbox.files.grep(pattern, { path, regex, ignoreCase, include, maxItems, signal });
  return { matches: found.items, count: found.items.length, truncated: found.truncated };
}
