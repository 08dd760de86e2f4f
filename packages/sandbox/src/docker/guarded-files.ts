import { type FileEntry, FileRefusal } from "@berth/protocol";
import type {
  FileToWrite,
  Growth,
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
import { directoryBytes, type QuotaGuard } from "../quota-guard.ts";

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
    return this.#growing(size, wayBytes([path]), async (room) => {
      const { made, madeDirectories, ...written } = await link.files.write(path, content, {
        ...options,
        ...room,
      });
      this.#quota.wrote(size, { made, madeDirectories });
      return written;
    });
  }

  /** What init refuses for the quota is refused with the quota's numbers. */
  async #growing<T>(size: number, way: number, run: (room: Room) => Promise<T>): Promise<T> {
    const { release, ...room } = await this.#quota.reserve(size + way);
    try {
      return await run(room);
    } catch (error) {
      // Directories on the way may have been made all the same.
      this.#quota.lostCount();
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
    const way = wayBytes(files.map(({ path }) => path));
    return this.#many(size, way, (room) => link.files.writeMany(files, { ...options, ...room }));
  }

  async unpack(archive: Uint8Array, options: UnpackOptions = {}): Promise<Unpacked> {
    const link = await this.#link();
    const { entries, bytes } = await link.files.checkArchive(archive, options);
    const way = wayBytes([`${options.path ?? ""}/`]);
    const written = await this.#many(bytes, way, (room) =>
      link.files.unpack(archive, { ...options, ...room }),
    );
    return { ...written, entries };
  }

  /** Puts the quota's numbers into a refusal of init's that has the code `quota`. */
  async #many(
    size: number,
    way: number,
    write: (room: Room) => Promise<ManyWritten & Growth>,
  ): Promise<ManyWritten> {
    const { release, ...room } = await this.#quota.reserve(size + way);
    try {
      const { made, madeDirectories, ...written } = await write(room);
      this.#quota.wrote(written.bytes, { made, madeDirectories });
      const refused = written.refused.map((one) =>
        one.refusal.code === "quota" ? { ...one, refusal: this.#quota.refusal(size) } : one,
      );
      return { ...written, refused };
    } catch (error) {
      // Some of it may have been written.
      this.#quota.lostCount();
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

  async move(from: string, to: string, options: MoveOptions = {}): Promise<void> {
    const link = await this.#link();
    try {
      if (!options.parents) await link.files.move(from, to, options);
      else
        await this.#growing(0, wayBytes([to]), async (room) => {
          this.#quota.wrote(0, await link.files.move(from, to, { ...options, ...room }));
        });
    } finally {
      this.#quota.changed();
    }
  }

  async makeDirectory(path: string, options?: MakeDirectoryOptions): Promise<boolean> {
    const link = await this.#link();
    return this.#growing(0, wayBytes([`${path}/`]), async (room) => {
      const { created, ...growth } = await link.files.makeDirectory(path, { ...options, ...room });
      this.#quota.wrote(0, growth);
      return created;
    });
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

/**
 * The most that directories on the way to these take, if none is there. Kept from other writes meanwhile. A directory counts once for
 * neighbours in the list, which are mostly in the same one.
 */
function wayBytes(paths: readonly string[]): number {
  let directories = 0;
  let before = "";
  for (const path of paths) {
    let same = 0;
    while (same < path.length && path[same] === before[same]) same++;
    for (let at = path.indexOf("/", same); at >= 0; at = path.indexOf("/", at + 1)) directories++;
    before = path;
  }
  return directories * directoryBytes;
}
