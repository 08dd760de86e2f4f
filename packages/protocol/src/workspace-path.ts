import { z } from "zod";

export const workspaceDirectory = "/workspace";
/** The agent's own directory, if its profile allows one. */
export const agentDirectory = "/agent";
/** The tenant's tools, if the profile allows them; their programs are in `bin`. */
export const toolsDirectory = "/tools";

/** Copies of other tenants' files that it may read, each in a directory of the tenant's name. */
export const teamDirectory = "/team";

/** Bytes, not characters: the kernel counts bytes. */
const maxPathBytes = 4095;
const maxNameBytes = 255;

/** Why a path cannot name something in a workspace; undefined if it can. */
export function pathProblem(path: string): string | undefined {
  for (let index = 0; index < path.length; index++) {
    const code = path.charCodeAt(index);
    if (code < 0x20 || code === 0x7f)
      return `it has a control byte (0x${code.toString(16).padStart(2, "0")}) at position ${index}`;
  }
  const inside = withoutWorkspacePrefix(path);
  if (inside.startsWith("/")) return `it is absolute; give a path relative to ${workspaceDirectory}`;
  if (Buffer.byteLength(path) > maxPathBytes) return `it is longer than ${maxPathBytes} bytes`;
  for (const name of inside.split("/")) {
    if (name === "..") return `it has a ".." segment`;
    if (Buffer.byteLength(name) > maxNameBytes) return `it has a name longer than ${maxNameBytes} bytes`;
  }
  return undefined;
}

/** `/workspace/a/b` and `a/b` are the same file; agents write both. */
export function withoutWorkspacePrefix(path: string): string {
  if (path === workspaceDirectory) return "";
  return path.startsWith(`${workspaceDirectory}/`) ? path.slice(workspaceDirectory.length + 1) : path;
}

/** A path in the workspace; the empty path is the workspace itself. */
export const workspacePath = z.string().superRefine((path, context) => {
  const problem = pathProblem(path);
  if (problem) context.addIssue({ code: "custom", message: `invalid path: ${problem}` });
});

/** A path in the workspace, or an absolute one in a directory that the tenant's sandboxes share. */
export const visiblePath = z.string().superRefine((path, context) => {
  const problem = pathProblem(sharedPath(path)?.rest ?? path);
  if (problem) context.addIssue({ code: "custom", message: `invalid path: ${problem}` });
});

/** Splits an absolute path in such a directory: which directory, and where in it. */
export function sharedPath(path: string): { readonly directory: string; readonly rest: string } | undefined {
  const directory = [agentDirectory, toolsDirectory, teamDirectory].find(
    (one) => path === one || path.startsWith(`${one}/`),
  );
  return directory === undefined ? undefined : { directory, rest: path.slice(directory.length + 1) };
}

/** A `visiblePath` that names something in its directory. */
export const visibleFilePath = visiblePath.refine(
  (path) => namesSomething(sharedPath(path)?.rest ?? withoutWorkspacePrefix(path)),
  { error: "invalid path: it names the directory itself" },
);

/** A path that must name something inside the workspace, not the workspace itself. */
export const workspaceFilePath = workspacePath.refine(
  (path) => namesSomething(withoutWorkspacePrefix(path)),
  { error: "invalid path: it names the workspace itself" },
);

function namesSomething(inside: string): boolean {
  return inside.split("/").some((name) => name !== "" && name !== ".");
}
