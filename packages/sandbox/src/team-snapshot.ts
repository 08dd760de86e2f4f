import { randomBytes } from "node:crypto";
import { chmod, mkdir, open, rename, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type FileEntry, FileRefusal, isFault, pathProblem } from "@berth/protocol";
import type { SandboxFiles } from "./port.ts";

export interface SnapshotBounds {
  readonly bytes: number;
  readonly entries: number;
}

/** Describes the copy of a peer's files. */
export interface SnapshotReport {
  readonly atMs: number;
  readonly entries: number;
  readonly bytes: number;
  /** Entries beyond the bounds, links that lead elsewhere, and entries that are neither file, directory nor link. */
  readonly leftOut: number;
  /** A bound was reached. */
  readonly cut: boolean;
}

const mode = { directory: 0o755, file: 0o644, program: 0o755 } as const;

/**
 * Copies a peer's files, as its own init reports them, into a directory that no tenant can write to. Copies only files, directories and links
 * that stay inside: tenants could communicate through a FIFO, a socket or a device. Names come from a process 1 that may be hostile.
 */
export async function copySnapshot(
  files: Pick<SandboxFiles, "list" | "read">,
  target: string,
  { bounds, signal }: { readonly bounds: SnapshotBounds; readonly signal: AbortSignal },
): Promise<SnapshotReport> {
  const aside = join(dirname(target), `.${randomBytes(8).toString("hex")}`);
  await makeDirectory(aside);
  const { items, truncated } = await listed(files, bounds, signal);
  const copy = new Copy(files, aside, bounds.bytes, signal);
  for (const entry of inOrder(items)) await copy.add(entry);
  await replaceDirectory(aside, target);
  return { atMs: Date.now(), ...copy.done, cut: truncated || copy.isCut };
}

/** Makes an empty copy: the peer has no files, or the disk has no room. */
export async function emptySnapshot(target: string): Promise<SnapshotReport> {
  const aside = join(dirname(target), `.${randomBytes(8).toString("hex")}`);
  await makeDirectory(aside);
  await replaceDirectory(aside, target);
  return { atMs: Date.now(), entries: 0, bytes: 0, leftOut: 0, cut: false };
}

/** A directory before what is in it, and links last: nothing is written through one. */
function inOrder(items: readonly FileEntry[]): FileEntry[] {
  const rank = ({ type }: FileEntry) => (type === "symlink" ? 1 : 0);
  return [...items].sort((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1));
}

async function listed(
  files: Pick<SandboxFiles, "list">,
  { entries: maxItems }: SnapshotBounds,
  signal: AbortSignal,
) {
  try {
    return await files.list("", { recursive: true, maxItems, signal });
  } catch (error) {
    if (error instanceof FileRefusal) return { items: [], truncated: true };
    throw error;
  }
}

class Copy {
  readonly #files: Pick<SandboxFiles, "read">;
  readonly #target: string;
  readonly #signal: AbortSignal;
  #roomBytes: number;
  #entries = 0;
  #bytes = 0;
  #leftOut = 0;
  isCut = false;

  constructor(files: Pick<SandboxFiles, "read">, target: string, roomBytes: number, signal: AbortSignal) {
    this.#files = files;
    this.#target = target;
    this.#roomBytes = roomBytes;
    this.#signal = signal;
  }

  get done(): Pick<SnapshotReport, "entries" | "bytes" | "leftOut"> {
    return { entries: this.#entries, bytes: this.#bytes, leftOut: this.#leftOut };
  }

  async add(entry: FileEntry): Promise<void> {
    const isThere = isPlainPath(entry.path) && !this.#signal.aborted && (await this.#copied(entry));
    if (isThere) this.#entries++;
    else this.#leftOut++;
    if (this.#signal.aborted) this.isCut = true;
  }

  async #copied({ path, type, size, mode: given, target = "" }: FileEntry): Promise<boolean> {
    const place = join(this.#target, path);
    try {
      switch (type) {
        case "directory":
          await makeDirectory(place);
          return true;
        case "symlink":
          if (!staysInside(path, target)) return false;
          await symlink(target, place);
          return true;
        case "file":
          return await this.#copiedFile(path, place, { size, isProgram: (given & 0o100) !== 0 });
        default:
          return false;
      }
    } catch (error) {
      // Gone meanwhile, not readable, a name too long for this file system, or below an entry that was left out.
      if (error instanceof FileRefusal || isAboutPath(error)) return false;
      throw error;
    }
  }

  async #copiedFile(
    path: string,
    place: string,
    { size, isProgram }: { readonly size: number; readonly isProgram: boolean },
  ): Promise<boolean> {
    if (size > this.#roomBytes) {
      this.isCut = true;
      return false;
    }
    const room = this.#roomBytes;
    let written = 0;
    const file = await open(place, "wx", isProgram ? mode.program : mode.file);
    try {
      const onData = async (bytes: Uint8Array) => {
        written += bytes.length;
        await file.write(bytes);
      };
      // It may have grown since it was listed.
      if (size > 0) await this.#files.read(path, { length: room, onData, signal: this.#signal });
      await file.chmod(isProgram ? mode.program : mode.file);
    } catch (error) {
      await rm(place, { force: true });
      if (isFault(error, "aborted")) return false;
      throw error;
    } finally {
      await file.close();
      this.#roomBytes -= written;
    }
    this.#bytes += written;
    return true;
  }
}

/** Whether the path is relative and made of plain names. */
function isPlainPath(path: string): boolean {
  const isNamed = path.split("/").every((name) => name !== "" && name !== "." && name !== "..");
  return isNamed && !path.startsWith("/") && pathProblem(path) === undefined;
}

/**
 * Whether a link leads into the copy, no matter what else is copied. Its target may go up first, no further than the copy's root, and
 * then only down: a `..` behind a name could go up from where another link leads.
 */
export function staysInside(path: string, target: string): boolean {
  const names = target.split("/").filter((name) => name !== "" && name !== ".");
  if (target.startsWith("/") || target === "" || pathProblem(names.filter((name) => name !== "..").join("/")))
    return false;
  const up = names.findIndex((name) => name !== "..");
  const ups = up === -1 ? names.length : up;
  const depth = path.split("/").length - 1;
  return ups <= depth && !names.slice(ups).includes("..");
}

/** Readable by other users under any umask of the worker. */
async function makeDirectory(path: string): Promise<void> {
  await mkdir(path);
  await chmod(path, mode.directory);
}

async function replaceDirectory(from: string, to: string): Promise<void> {
  await rm(to, { recursive: true, force: true });
  await rename(from, to);
}

/** The path cannot be made here, for reasons that the peer's names cause. */
function isAboutPath(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return (
    code !== undefined && ["ENOENT", "ENOTDIR", "EEXIST", "ENAMETOOLONG", "EISDIR", "ELOOP"].includes(code)
  );
}
