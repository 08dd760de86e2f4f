import type { FileRefusalCode } from "@berth/protocol";

/** The sentence that an agent reads when a file operation is refused. */
export function refusalText(code: FileRefusalCode, path: string, detail: string): string {
  const what = path === "" ? "the workspace" : path;
  switch (code) {
    case "invalid-path":
      return `invalid path: ${detail || what}`;
    case "outside-workspace":
      return `invalid path: ${what} leads out of the workspace`;
    case "not-found":
      return `no such file or directory: ${what}`;
    case "not-a-file":
      return `not a regular file: ${what}`;
    case "too-large":
      return `too large to be read at once: ${what}`;
    case "not-a-directory":
      return `not a directory: ${what}`;
    case "is-a-directory":
      return `it is a directory: ${what}`;
    case "exists":
      return `it exists already: ${what}`;
    case "not-empty":
      return `the directory is not empty: ${what}`;
    case "denied":
      return `permission denied: ${what}`;
    case "no-space":
      return `no space left for ${what}`;
    case "quota":
      return `workspace quota exceeded by ${what}`;
    case "mismatch":
      return `${what} has changed: its content does not have the sha256 of ifMatch`;
    case "too-many-links":
      return `too many symbolic links in ${what}`;
    case "bad-pattern":
      return `the pattern cannot be used: ${detail}`;
    case "bad-archive":
      return `the archive cannot be unpacked: ${detail}`;
  }
}
