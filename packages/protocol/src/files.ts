import { z } from "zod";

export const fileEntry = z.strictObject({
  path: z.string().describe("from the workspace's root, without a leading slash"),
  type: z.enum(["file", "directory", "symlink", "other"]),
  size: z.number(),
  mode: z.number(),
  modifiedMs: z.number(),
  target: z.string().exactOptional().describe("where a symlink points, as written"),
});
export type FileEntry = Readonly<z.infer<typeof fileEntry>>;
export type EntryType = FileEntry["type"];

export const grepMatch = z.strictObject({
  path: z.string(),
  line: z.number(),
  text: z.string(),
  cut: z.boolean().describe("the line was longer than what is shown"),
});
export type GrepMatch = Readonly<z.infer<typeof grepMatch>>;

export interface WorkspaceUsage {
  /** Allocated on disk. Counts hard links once, and deleted files that a process holds open. */
  readonly bytes: number;
  readonly entries: number;
  /** The part of `bytes` in deleted files that are still open. */
  readonly unlinkedBytes: number;
  /** The walk stopped early: there is more. */
  readonly partial: boolean;
}

/** Why a file operation was refused, as init reports it. */
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
  "bad-archive",
] as const;
export type FileRefusalCode = (typeof fileRefusals)[number];

/**
 * The request cannot be met, for a reason in the request: a wrong path, a full quota, a stale hash. File operations throw it;
 * agents see `ERR: <message>`.
 */
export class FileRefusal extends Error {
  override readonly name = "FileRefusal";
  readonly code: FileRefusalCode;

  constructor(code: FileRefusalCode, message: string) {
    super(message);
    this.code = code;
  }
}
