import { UsageError } from "../complaint.ts";

export interface RemotePlace {
  readonly tenant: string;
  readonly path: string;
  /** What is in it, not itself. */
  readonly contents: boolean;
}

/**
 * `acme:dir/file` and `bob@example.com:dir/file` are tenants'; anything else is here. A path here that looks like one is written
 * `./a:b`. A tenant whose name has a colon or a slash is named by its id.
 */
export function remotePlace(text: string): RemotePlace | undefined {
  const [, tenant, path] = /^([^:/]+):(.*)$/s.exec(text) ?? [];
  if (tenant === undefined || path === undefined) return undefined;
  return { tenant, path: withoutEnds(path), contents: path === "." || path.endsWith("/.") };
}

/** Whether what is copied goes into it, by how it is written. */
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
