import {
  Fault,
  FileRefusal,
  type FileRefusalCode,
  fileRefusals,
  pathProblem,
  withoutWorkspacePrefix,
} from "@berth/protocol";
import { refusalText } from "../refusal-text.ts";
import { startProblem } from "./start-problem.ts";

/** The tools' own words for what init has as error numbers. */
const toolErrors: readonly (readonly [RegExp, FileRefusalCode])[] = [
  [/no space left|disk quota exceeded|file too large|file size limit/i, "no-space"],
  [/permission denied|operation not permitted|read-only file system/i, "denied"],
  [/file name too long/i, "invalid-path"],
  [/directory not empty/i, "not-empty"],
  [/is a directory/i, "is-a-directory"],
  [/not a directory/i, "not-a-directory"],
  [/file exists/i, "exists"],
  [/no such file/i, "not-found"],
];

/** What a script's `no` means to the caller. */
export function scriptFailure(
  operation: string,
  path: string,
  { code, stderr }: { code: string; stderr: string },
): Error {
  const known =
    fileRefusals.find((refusal) => refusal === code) ??
    (code === "io" ? toolErrors.find(([words]) => words.test(stderr))?.[1] : undefined);
  if (known) return new FileRefusal(known, refusalText(known, path, ""));
  const forked = code === "io" && startProblem(stderr) === "fork-failed";
  const detail = code === "no-sha256sum" ? "the image has no sha256sum" : stderr;
  return new Fault("file-operation-failed", { operation, code: forked ? "fork-failed" : code, detail });
}

export interface ScriptPath {
  /** Beneath the workspace, without a slash at either end. */
  readonly parent: string;
  /** `./name`, or `.` for the workspace itself. */
  readonly name: string;
  /** Both. */
  readonly whole: string;
  readonly slash: boolean;
}

/** Throws the refusal of a path that cannot be meant. */
export function scriptPath(path: string, options: { readonly notTheWorkspace?: boolean } = {}): ScriptPath {
  const problem = pathProblem(path);
  if (problem) throw new FileRefusal("invalid-path", `invalid path: ${problem}`);
  const names = withoutWorkspacePrefix(path)
    .split("/")
    .filter((name) => name !== "" && name !== ".");
  const last = names.at(-1);
  if (last === undefined && options.notTheWorkspace) {
    throw new FileRefusal("invalid-path", "invalid path: it names the workspace itself");
  }
  return {
    parent: names.slice(0, -1).join("/"),
    name: last === undefined ? "." : `./${last}`,
    whole: names.join("/"),
    slash: path.endsWith("/"),
  };
}
