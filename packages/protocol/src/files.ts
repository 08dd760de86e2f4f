export type EntryType = "file" | "directory" | "symlink" | "other";

export interface FileEntry {
  /** From the workspace's root, without a leading slash. */
  readonly path: string;
  readonly type: EntryType;
  readonly size: number;
  readonly mode: number;
  readonly modifiedMs: number;
  /** Where a symlink points, as written. */
  readonly target?: string;
}

export interface GrepMatch {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  /** The line was longer than what is shown. */
  readonly cut: boolean;
}

export interface WorkspaceUsage {
  /** Allocated on disk, hard links once, deleted files that a process still holds open included. */
  readonly bytes: number;
  readonly entries: number;
  /** The part of `bytes` that no directory shows any more. */
  readonly unlinkedBytes: number;
  /** The walk stopped early: there is more than this. */
  readonly partial: boolean;
}

/** Why a file operation was refused, as init and the fallback both say it. */
export const fileRefusals = [
  "invalid-path",
  "outside-workspace",
  "not-found",
  "not-a-file",
  "too-large",
  "not-a-directory",
  "is-a-directory",
  "exists",
  "not-empty",
  "denied",
  "no-space",
  "quota",
  "mismatch",
  "too-many-links",
  "bad-pattern",
] as const;
export type FileRefusalCode = (typeof fileRefusals)[number];

/**
 * The request cannot be met, and it is the request's doing: a wrong path, a full quota, a stale hash. Thrown by file
 * operations, shown to the agent as `ERR: <message>`.
 */
export class FileRefusal extends Error {
  override readonly name = "FileRefusal";
  readonly code: FileRefusalCode;

  constructor(code: FileRefusalCode, message: string) {
    super(message);
    this.code = code;
  }
}
