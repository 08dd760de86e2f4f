import { type FileEntry, FileRefusal } from "@berth/protocol";
import type {
  FileToWrite,
  ManyRead,
  ManyWritten,
  ReadManyOptions,
  Room,
  Unpacked,
  UnpackOptions,
} from "../bulk.ts";
import type { Link } from "../link.ts";
import type {
  CallOptions,
  FileContent,
  FileStat,
  GlobOptions,
  GrepListing,
  GrepOptions,
  Listing,
  ListOptions,
  MakeDirectoryOptions,
  MoveOptions,
  ReadOptions,
  RemoveOptions,
  SandboxFiles,
  SizedStream,
  StatOptions,
  WriteOptions,
  WrittenFile,
} from "../port.ts";
import type { QuotaGuard } from "../quota-guard.ts";

/** The link's files. Checks the workspace's quota before an operation that may make it grow. */
export class GuardedFiles implements SandboxFiles {
  readonly #link: () => Promise<Link>;
  readonly #quota: QuotaGuard;

  constructor(link: () => Promise<Link>, quota: QuotaGuard) {
    this.#link = link;
    this.#quota = quota;
  }

  async read(path: string, options?: ReadOptions): Promise<FileContent> {
    return (await this.#link()).files.read(path, options);
  }

  async write(
    path: string,
    content: string | Uint8Array | SizedStream,
    options: WriteOptions = {},
  ): Promise<WrittenFile> {
    const link = await this.#link();
    const size = sizeOf(content);
    const { budgetBytes, release } = await this.#quota.reserve(size);
    try {
      const written = await link.files.write(path, content, { ...options, budgetBytes });
      this.#quota.wrote(size);
      return written;
    } catch (error) {
      if (!(error instanceof FileRefusal) || error.code !== "quota") throw error;
      throw this.#quota.refusal(size);
    } finally {
      release();
    }
  }

  async readMany(paths: readonly string[], options?: ReadManyOptions): Promise<ManyRead> {
    return (await this.#link()).files.readMany(paths, options);
  }

  async writeMany(files: readonly FileToWrite[], options: CallOptions = {}): Promise<ManyWritten> {
    if (files.length === 0) return { count: 0, bytes: 0, refused: [] };
    const link = await this.#link();
    const size = files.reduce((sum, { bytes }) => sum + bytes.length, 0);
    return this.#many(size, (room) => link.files.writeMany(files, { ...options, ...room }));
  }

  async unpack(archive: Uint8Array, options: UnpackOptions = {}): Promise<Unpacked> {
    const link = await this.#link();
    const { entries, bytes } = await link.files.checkArchive(archive, options);
    const written = await this.#many(bytes, (room) => link.files.unpack(archive, { ...options, ...room }));
    return { ...written, entries };
  }

  /** Puts the quota's numbers into a refusal of init's that has the code `quota`. */
  async #many(size: number, write: (room: Room) => Promise<ManyWritten>): Promise<ManyWritten> {
    const { release, ...room } = await this.#quota.reserve(size);
    try {
      const written = await write(room);
      this.#quota.wrote(written.bytes, written.count);
      const refused = written.refused.map((one) =>
        one.refusal.code === "quota" ? { ...one, refusal: this.#quota.refusal(size) } : one,
      );
      return { ...written, refused };
    } catch (error) {
      // Some of it may have been written.
      this.#quota.changed();
      throw error;
    } finally {
      release();
    }
  }

  async stat(path: string, options?: StatOptions): Promise<FileStat> {
    return (await this.#link()).files.stat(path, options);
  }

  async list(path: string, options?: ListOptions): Promise<Listing<FileEntry>> {
    return (await this.#link()).files.list(path, options);
  }

  async remove(path: string, options?: RemoveOptions): Promise<number> {
    try {
      return await (await this.#link()).files.remove(path, options);
    } finally {
      this.#quota.changed();
    }
  }

  async move(from: string, to: string, options?: MoveOptions): Promise<void> {
    try {
      await (await this.#link()).files.move(from, to, options);
    } finally {
      this.#quota.changed();
    }
  }

  async makeDirectory(path: string, options?: MakeDirectoryOptions): Promise<boolean> {
    const link = await this.#link();
    const { release } = await this.#quota.reserve(0);
    try {
      const created = await link.files.makeDirectory(path, options);
      if (created) this.#quota.wrote(0);
      return created;
    } finally {
      release();
    }
  }

  async glob(patterns: string | readonly string[], options?: GlobOptions): Promise<Listing<FileEntry>> {
    return (await this.#link()).files.glob(patterns, options);
  }

  async grep(pattern: string, options?: GrepOptions): Promise<GrepListing> {
    return (await this.#link()).files.grep(pattern, options);
  }
}

function sizeOf(content: string | Uint8Array | SizedStream): number {
  if (typeof content === "string") return Buffer.byteLength(content);
  return content instanceof Uint8Array ? content.length : content.size;
}
