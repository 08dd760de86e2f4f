import { withoutWorkspacePrefix } from "@berth/protocol";

/** Normalises a path: `/workspace/./a//b/` becomes `a/b`, the workspace itself the empty name. */
export function workspaceName(path: string): string {
  return withoutWorkspacePrefix(path)
    .split("/")
    .filter((name) => name !== "" && name !== ".")
    .join("/");
}

export function joinNames(directory: string, name: string): string {
  return directory === "" || name === "" ? directory + name : `${directory}/${name}`;
}

/** `a/b/c` has `a` and `a/b`. */
export function ancestors(name: string): string[] {
  const names = name.split("/");
  return names.slice(1).map((_, index) => names.slice(0, index + 1).join("/"));
}
