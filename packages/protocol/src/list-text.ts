import type { JobValue } from "./job-result.ts";

/** A `list` result for agents: first the persisted files of the conversation, then the workspace. */
export function listText(path: string, { entries = [], persisted = [], truncated }: JobValue): string {
  const kept = persisted.map(
    ({ path, size, mime, id }) => `${path} (${size} bytes, ${mime}, artifact ${id})`,
  );
  const found = entries.map(({ path, type, size, target }) => {
    if (type === "directory") return `${path}/`;
    if (type === "symlink") return `${path} -> ${target ?? ""}`;
    return type === "file" ? `${path} (${size} bytes)` : `${path} (${type})`;
  });
  const where = path === "" ? "[sandbox workspace]" : `[sandbox workspace: ${path}]`;
  const more = truncated ? ["[there is more]"] : [];
  return [
    ...kept,
    ...(kept.length > 0 ? [""] : []),
    where,
    ...(found.length > 0 ? found : ["(empty)"]),
    ...more,
  ].join("\n");
}
