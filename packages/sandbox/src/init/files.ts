import {
  DoneTag,
  FileOp,
  FileTag,
  FrameError,
  GlobFlag,
  GrepFlag,
  ItemTag,
  ListFlag,
  MkdirFlag,
  MoveFlag,
  ReadFlag,
  RecordWriter,
  RemoveFlag,
  StatFlag,
  WriteFlag,
} from "@berth/init";
import { type FileEntry, FileRefusal, type GrepMatch, type WorkspaceUsage } from "@berth/protocol";
import type {
  ArchiveSize,
  FileToWrite,
  Growth,
  ManyRead,
  ManyWritten,
  ReadManyOptions,
  Room,
  UnpackOptions,
} from "../bulk.ts";
import type { LinkFiles, MadeDirectory, UsageOptions } from "../link.ts";
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
  SizedStream,
  StatOptions,
  WriteOptions,
  WrittenFile,
} from "../port.ts";
import { BulkFiles, growthOf, wholeNumber } from "./bulk-files.ts";
import { outputWindowBytes } from "./channel.ts";
import type { InitConnection } from "./connection.ts";
import { boundedText, entryType, maxPathBytes, readEntry } from "./file-items.ts";
import { FileOperations, type FileOperationsOptions, refuseBadPath } from "./file-operations.ts";
import { GrowingBytes } from "./growing-bytes.ts";

const defaultMaxItems = 10_000;
const defaultMaxReadBytes = 64 * 1024 * 1024;
const defaultMaxLineBytes = 512;

/** File operations as init does them: inside the sandbox, as the tenant, relative to the workspace. */
export class InitFiles implements LinkFiles {
  readonly #operations: FileOperations;
  readonly #bulk: BulkFiles;

  constructor(connection: InitConnection, options: FileOperationsOptions) {
    this.#operations = new FileOperations(connection, options);
    this.#bulk = new BulkFiles(this.#operations);
  }

  async read(path: string, options: ReadOptions = {}): Promise<FileContent> {
    const { maxBytes = defaultMaxReadBytes, onData } = options;
    const content = new GrowingBytes(maxBytes);
    const length = onData ? options.length : Math.min(options.length ?? Number.MAX_SAFE_INTEGER, maxBytes);
    const done = await this.#operations.run(
      "read",
      path,
      this.#request(FileOp.read, path)
        .add(FileTag.flags, ReadFlag.hash)
        .add(FileTag.offset, options.offset)
        .add(FileTag.length, length),
      { signal: options.signal, untimed: onData !== undefined },
      // Copied: while a consumer waits, the next frame of any sandbox overwrites the bytes.
      { onData: onData ? (bytes) => onData(Buffer.from(bytes)) : (bytes) => content.add(bytes) },
    );
    const size = done.requiredNumber(DoneTag.size);
    if (!onData && options.length === undefined && size - (options.offset ?? 0) > maxBytes) {
      throw new FileRefusal(
        "too-large",
        `${path} has ${size} bytes, more than the ${maxBytes} that may be read at once; read a range`,
      );
    }
    return {
      bytes: content.bytes(),
      size,
      mode: done.number(DoneTag.mode) ?? 0,
      modifiedMs: done.number(DoneTag.mtimeMs) ?? 0,
      sha256: done.bytes(DoneTag.sha256)?.toString("hex") ?? "",
    };
  }

  async write(
    path: string,
    content: string | Uint8Array | SizedStream,
    options: WriteOptions & Room,
  ): Promise<WrittenFile & Growth> {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    const size = bytes instanceof Uint8Array ? bytes.length : bytes.size;
    const flags =
      (options.append ? WriteFlag.append : 0) |
      ((options.parents ?? true) ? WriteFlag.parents : 0) |
      (options.mustNotExist ? WriteFlag.exclusive : 0);
    const request = this.#request(FileOp.write, path)
      .add(FileTag.flags, flags)
      .add(FileTag.size, size)
      .add(FileTag.mode, options.mode)
      .add(FileTag.sha256, options.ifMatch === undefined ? undefined : Buffer.from(options.ifMatch, "hex"));
    const done = await this.#operations.run(
      "write",
      path,
      withRoom(request, options),
      { signal: options.signal, untimed: !(bytes instanceof Uint8Array) },
      {},
      bytes instanceof Uint8Array ? bytes : bytes.chunks,
    );
    return {
      size: done.requiredNumber(DoneTag.size),
      created: done.number(DoneTag.created) === 1,
      ...growthOf(done),
      sha256: done.bytes(DoneTag.sha256)?.toString("hex") ?? "",
    };
  }

  async stat(path: string, options: StatOptions = {}): Promise<FileStat> {
    const flags =
      (options.hash ? StatFlag.hash : 0) | (options.followLinks === false ? StatFlag.noFollow : 0);
    const done = await this.#operations.run(
      "stat",
      path,
      this.#request(FileOp.stat, path).add(FileTag.flags, flags),
      options,
    );
    const sha256 = done.bytes(DoneTag.sha256)?.toString("hex");
    const target = done.text(DoneTag.target);
    return {
      path,
      type: entryType(done.bytes(DoneTag.type)),
      size: done.number(DoneTag.size) ?? 0,
      mode: done.number(DoneTag.mode) ?? 0,
      modifiedMs: done.number(DoneTag.mtimeMs) ?? 0,
      ...(target === undefined ? {} : { target }),
      ...(sha256 === undefined ? {} : { sha256 }),
    };
  }

  async list(path: string, options: ListOptions = {}): Promise<Listing<FileEntry>> {
    const maxItems = options.maxItems ?? defaultMaxItems;
    return this.#entries(
      "list",
      path,
      this.#request(FileOp.list, path)
        .add(FileTag.flags, options.recursive ? ListFlag.recursive : 0)
        .add(FileTag.maxItems, maxItems)
        .add(FileTag.maxDepth, options.maxDepth),
      maxItems,
      options,
    );
  }

  async remove(path: string, options: RemoveOptions = {}): Promise<number> {
    const flags =
      (options.recursive ? RemoveFlag.recursive : 0) | (options.missingOk ? RemoveFlag.missingOk : 0);
    const request = this.#request(FileOp.remove, path).add(FileTag.flags, flags);
    const done = await this.#operations.run("remove", path, request, options);
    return done.number(DoneTag.count) ?? 0;
  }

  async move(from: string, to: string, options: MoveOptions & Partial<Room> = {}): Promise<Growth> {
    refuseBadPath(to);
    const flags = (options.overwrite ? MoveFlag.overwrite : 0) | (options.parents ? MoveFlag.parents : 0);
    const request = this.#request(FileOp.move, from).add(FileTag.path2, to).add(FileTag.flags, flags);
    const done = await this.#operations.run("move", from, withRoom(request, options), options);
    return growthOf(done);
  }

  async makeDirectory(
    path: string,
    options: MakeDirectoryOptions & Partial<Room> = {},
  ): Promise<MadeDirectory> {
    const request = this.#request(FileOp.mkdir, path)
      .add(FileTag.flags, (options.parents ?? true) ? MkdirFlag.parents : 0)
      .add(FileTag.mode, options.mode);
    const done = await this.#operations.run("make directory", path, withRoom(request, options), options);
    return { created: done.number(DoneTag.created) === 1, ...growthOf(done) };
  }

  async glob(patterns: string | readonly string[], options: GlobOptions = {}): Promise<Listing<FileEntry>> {
    const maxItems = options.maxItems ?? defaultMaxItems;
    const base = options.base ?? "";
    return this.#entries(
      "glob",
      base,
      this.#request(FileOp.glob, base)
        .addAll(FileTag.pattern, typeof patterns === "string" ? [patterns] : patterns)
        .add(FileTag.flags, options.dot ? GlobFlag.dot : 0)
        .add(FileTag.maxItems, maxItems),
      maxItems,
      options,
    );
  }

  async grep(pattern: string, options: GrepOptions = {}): Promise<GrepListing> {
    const maxItems = options.maxItems ?? defaultMaxItems;
    const maxLineBytes = options.maxLineBytes ?? defaultMaxLineBytes;
    const path = options.path ?? "";
    const items: GrepMatch[] = [];
    const flags = (options.regex ? GrepFlag.regex : 0) | (options.ignoreCase ? GrepFlag.ignoreCase : 0);
    const done = await this.#operations.run(
      "grep",
      path,
      this.#request(FileOp.grep, path)
        .add(FileTag.pattern, pattern)
        .addAll(FileTag.include, options.include ?? [])
        .add(FileTag.flags, flags)
        .add(FileTag.maxItems, maxItems)
        .add(FileTag.maxLineBytes, maxLineBytes),
      options,
      {
        onItem: (item) => {
          if (items.length >= maxItems) throw new FrameError("more matches than were asked for");
          items.push({
            path: boundedText(item, ItemTag.path, maxPathBytes) ?? "",
            line: item.requiredNumber(ItemTag.line),
            text: boundedText(item, ItemTag.text, maxLineBytes) ?? "",
            cut: item.number(ItemTag.cut) === 1,
          });
        },
      },
    );
    return {
      items: items.sort((a, b) => compare(a.path, b.path) || a.line - b.line),
      truncated: done.number(DoneTag.truncated) === 1,
      filesSearched: done.number(DoneTag.files) ?? 0,
      filesSkipped: done.number(DoneTag.skipped) ?? 0,
    };
  }

  readMany(paths: readonly string[], options: ReadManyOptions = {}): Promise<ManyRead> {
    return this.#bulk.readMany(paths, options);
  }

  writeMany(files: readonly FileToWrite[], options: CallOptions & Room): Promise<ManyWritten & Growth> {
    return this.#bulk.writeMany(files, options);
  }

  checkArchive(archive: Uint8Array, options: UnpackOptions): Promise<ArchiveSize> {
    return this.#bulk.checkArchive(archive, options);
  }

  unpack(archive: Uint8Array, options: UnpackOptions & Room): Promise<ManyWritten & Growth> {
    return this.#bulk.unpack(archive, options);
  }

  async usage(options: UsageOptions): Promise<WorkspaceUsage> {
    const { path = "" } = options;
    const request = this.#request(FileOp.usage, path).add(FileTag.maxItems, options.maxEntries);
    const done = await this.#operations.run("usage", path, request, options);
    const unlinkedBytes = done.number(DoneTag.unlinked) ?? 0;
    return {
      bytes: done.requiredNumber(DoneTag.bytes) + unlinkedBytes,
      entries: done.requiredNumber(DoneTag.entries),
      unlinkedBytes,
      partial: done.number(DoneTag.truncated) === 1,
    };
  }

  #request(op: FileOp, path: string): RecordWriter {
    refuseBadPath(path);
    return new RecordWriter()
      .add(FileTag.op, op)
      .add(FileTag.path, path)
      .add(FileTag.credit, outputWindowBytes);
  }

  async #entries(
    operation: string,
    path: string,
    request: RecordWriter,
    maxItems: number,
    options: CallOptions,
  ): Promise<Listing<FileEntry>> {
    const items: FileEntry[] = [];
    const done = await this.#operations.run(operation, path, request, options, {
      onItem: (item) => {
        if (items.length >= maxItems) throw new FrameError("more entries than were asked for");
        items.push(readEntry(item));
      },
    });
    return {
      items: items.sort((a, b) => compare(a.path, b.path)),
      truncated: done.number(DoneTag.truncated) === 1,
    };
  }
}

function withRoom(request: RecordWriter, { budgetBytes, budgetEntries }: Partial<Room>): RecordWriter {
  return request
    .add(FileTag.budget, budgetBytes === undefined ? undefined : wholeNumber(budgetBytes))
    .add(FileTag.maxItems, budgetEntries === undefined ? undefined : wholeNumber(budgetEntries));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
