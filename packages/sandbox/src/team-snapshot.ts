import { randomBytes } from "node:crypto";
import { chmod, mkdir, open, rename, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type FileEntry, FileRefusal, isFault, pathProblem } from "@berth/protocol";
import type { SandboxFiles } from "./port.ts";

export interface SnapshotBounds {
  readonly bytes: number;
  readonly entries: number;
}

/** What a reader finds of a peer. */
export interface SnapshotReport {
  readonly atMs: number;
  readonly entries: number;
  readonly bytes: number;
  /** Beyond the bounds, links that lead elsewhere, and what is neither a file, a directory nor a link. */
  readonly leftOut: number;
  /** A bound was reached. */
  readonly cut: boolean;
}

const mode = { directory: 0o755, file: 0o644, program: 0o755 } as const;

/**
 * Copies a peer's files, as its own init shows them, into a directory that no tenant can write to. Only files, directories and links that
 * stay inside are copied: a FIFO, a socket or a device would be a way to talk. A name comes from a process 1 that may be hostile.
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

/** An empty one: the peer has no files, or they cannot be listed. */
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
      // Gone meanwhile, not readable, a name too long for this place, or below one that was left out.
      if (error instanceof FileRefusal || isOfThePlace(error)) return false;
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

/** Names alone, each of them a plain one. */
function isPlainPath(path: string): boolean {
  const isNamed = path.split("/").every((name) => name !== "" && name !== "." && name !== "..");
  return isNamed && !path.startsWith("/") && pathProblem(path) === undefined;
}

/**
 * Whether a link leads to something in the copy, whatever else is copied: first up, no further than the copy's root, then only down. A
 * `..` behind a name could go up from where another link leads.
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

/** Whatever the worker's umask is: other users read it. */
async function makeDirectory(path: string): Promise<void> {
  await mkdir(path);
  await chmod(path, mode.directory);
}

async function replaceDirectory(from: string, to: string): Promise<void> {
  await rm(to, { recursive: true, force: true });
  await rename(from, to);
}

function isOfThePlace(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return (
    code !== undefined && ["ENOENT", "ENOTDIR", "EEXIST", "ENAMETOOLONG", "EISDIR", "ELOOP"].includes(code)
  );
}
