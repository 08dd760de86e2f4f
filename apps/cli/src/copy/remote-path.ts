import { UsageError } from "../complaint.ts";

export interface RemotePath {
  readonly tenant: string;
  readonly path: string;
  /** Copy the content of the directory, not the directory itself. */
  readonly contents: boolean;
}

/**
 * `acme:dir/file` and `bob@example.com:dir/file` are paths of tenants; every other text is a local path. Write a local path
 * that looks remote as `./a:b`. Name a tenant whose name has a colon or a slash by its id.
 */
export function remotePath(text: string): RemotePath | undefined {
  const [, tenant, path] = /^([^:/]+):(.*)$/s.exec(text) ?? [];
  if (tenant === undefined || path === undefined) return undefined;
  return { tenant, path: withoutEnds(path), contents: path === "." || path.endsWith("/.") };
}

/** Whether the spelling of a target means "into this directory". */
export function meansInside(text: string): boolean {
  return /(:|\/|\/\.)$/.test(text) || text === "." || text.endsWith(":.");
}

function withoutEnds(path: string): string {
  const inside = path.replace(/^\/workspace(?=\/|$)/, "");
  if (path.startsWith("/") && inside === path)
    throw new UsageError(`${path}: a path in the sandbox is relative to /workspace`);
  return inside
    .split("/")
    .filter((name) => name !== "" && name !== ".")
    .join("/");
}
