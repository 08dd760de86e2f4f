import {
  DoneTag,
  encodeFiles,
  FileOp,
  FileTag,
  type FileToWrite,
  FrameError,
  ItemTag,
  type PackedEntry,
  PackFlag,
  type Records,
  RecordWriter,
  readPackedEntries,
  UnpackFlag,
} from "@berth/init";
import { FileRefusal, pathProblem, sharedPath } from "@berth/protocol";
import type {
  ArchiveSize,
  Growth,
  ManyRead,
  ManyWritten,
  ReadEntry,
  ReadManyOptions,
  RefusedFile,
  Room,
  UnpackOptions,
} from "../bulk.ts";
import type { CallOptions } from "../port.ts";
import { outputWindowBytes, printable } from "./channel.ts";
import { boundedText, maxPathBytes, readEntry } from "./file-items.ts";
import { type FileOperations, refusalOf, refuseBadPath } from "./file-operations.ts";
import { GrowingBytes } from "./growing-bytes.ts";

const defaultMaxBytes = 64 * 1024 * 1024;
const defaultMaxItems = 10_000;
/** Bytes of names in one request. PARTs have room for twice as many. */
const namesBytes = 1024 * 1024;
/** The largest item of an entry, and the lengths of its content's pieces. */
const entryBytes = 2 * maxPathBytes + 256;
const pieceShare = 1024;
/** Unpacking takes longer than other operations: a packed byte may unpack to a thousand. */
const deadlineFactor = 10;
const maxTextBytes = 1024;

/** PACK and UNPACK, and their results. */
export class BulkFiles {
  readonly #operations: FileOperations;

  constructor(operations: FileOperations) {
    this.#operations = operations;
  }

  async readMany(paths: readonly string[], options: ReadManyOptions): Promise<ManyRead> {
    const entries: ReadEntry[] = [];
    const refused: RefusedFile[] = [];
    let { maxBytes: roomBytes = defaultMaxBytes, maxItems: roomItems = defaultMaxItems } = options;
    let truncated = false;
    for (const some of inRequests(paths)) {
      const { packed, cut } = await this.#pack(some, roomBytes, roomItems, options);
      for (const { records, bytes } of packed) {
        const entry = this.#trusted(() => readEntry(records));
        const code = records.text(ItemTag.code);
        roomItems--;
        roomBytes -= bytes?.length ?? 0;
        if (roomItems < 0 || roomBytes < 0)
          throw this.#operations.refuseAnswer("more was packed than was asked for");
        if (code === undefined) entries.push(bytes === undefined ? entry : { ...entry, bytes });
        else refused.push({ path: entry.path, refusal: refusalFrom(code, entry.path, "") });
      }
      truncated ||= cut;
    }
    return { entries: entries.sort((a, b) => (a.path < b.path ? -1 : 1)), refused, truncated };
  }

  async #pack(
    paths: readonly string[],
    maxBytes: number,
    maxItems: number,
    { recursive, followLinks, signal }: ReadManyOptions,
  ): Promise<{ readonly packed: PackedEntry[]; readonly cut: boolean }> {
    const most = maxBytes + Math.ceil(maxBytes / pieceShare) + (maxItems + 1) * entryBytes;
    const content = new GrowingBytes(Math.min(most, maxBytes + defaultMaxBytes));
    const flags = (recursive ? PackFlag.recursive : 0) | (followLinks ? PackFlag.follow : 0);
    const request = new RecordWriter()
      .add(FileTag.op, FileOp.pack)
      .addAll(FileTag.name, paths)
      .add(FileTag.flags, flags)
      .add(FileTag.length, maxBytes)
      .add(FileTag.maxItems, maxItems)
      .add(FileTag.credit, outputWindowBytes);
    const deadlineMs = this.#operations.deadlineMs * deadlineFactor;
    const answers = { onData: (bytes: Buffer) => content.add(bytes) };
    const done = await this.#operations.run("read many", "", request, { signal, deadlineMs }, answers);
    return {
      packed: this.#trusted(() => [...readPackedEntries(content.bytes())]),
      cut: done.number(DoneTag.truncated) === 1,
    };
  }

  /** Reads an answer, whose content is not trusted. A malformed one closes the connection. */
  #trusted<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      throw error instanceof FrameError ? this.#operations.refuseAnswer(error.message) : error;
    }
  }

  async writeMany(files: readonly FileToWrite[], options: CallOptions & Room): Promise<ManyWritten & Growth> {
    const bad = files.flatMap(({ path }): RefusedFile[] => {
      const problem = pathProblem(sharedPath(path)?.rest ?? path);
      return problem ? [{ path, refusal: new FileRefusal("invalid-path", `invalid path: ${problem}`) }] : [];
    });
    const unwritable = new Set(bad.map(({ path }) => path));
    const good = unwritable.size === 0 ? files : files.filter(({ path }) => !unwritable.has(path));
    const written = await this.#unpack(encodeFiles(good), "", UnpackFlag.each, good.length, options, options);
    return { ...written, refused: [...bad, ...written.refused] };
  }

  async checkArchive(archive: Uint8Array, options: UnpackOptions): Promise<ArchiveSize> {
    const { count, bytes } = await this.#unpack(archive, options.path ?? "", UnpackFlag.check, 0, options);
    return { entries: count, bytes };
  }

  unpack(archive: Uint8Array, options: UnpackOptions & Room): Promise<ManyWritten & Growth> {
    return this.#unpack(archive, options.path ?? "", 0, 1, options, options);
  }

  async #unpack(
    archive: Uint8Array,
    path: string,
    flags: number,
    maxRefused: number,
    { signal }: CallOptions,
    room?: Room,
  ): Promise<ManyWritten & Growth> {
    refuseBadPath(path);
    const request = new RecordWriter()
      .add(FileTag.op, FileOp.unpack)
      .add(FileTag.path, path)
      .add(FileTag.flags, flags)
      .add(FileTag.credit, outputWindowBytes)
      .add(FileTag.budget, room && wholeNumber(room.budgetBytes))
      .add(FileTag.maxItems, room && wholeNumber(room.budgetEntries));
    const refused: RefusedFile[] = [];
    const deadlineMs = this.#operations.deadlineMs * deadlineFactor;
    const answers = {
      onItem: (item: PackedEntry["records"]) => {
        if (refused.length >= maxRefused) throw new FrameError("more refusals than entries");
        const name = boundedText(item, ItemTag.path, maxPathBytes) ?? "";
        const text = boundedText(item, ItemTag.text, maxTextBytes) ?? "";
        refused.push({
          path: name,
          refusal: refusalFrom(item.text(ItemTag.code) ?? "", name, printable(text)),
        });
      },
    };
    const done = await this.#operations.run(
      "unpack",
      path,
      request,
      { signal, deadlineMs },
      answers,
      archive,
    );
    return {
      count: done.requiredNumber(DoneTag.count),
      bytes: done.requiredNumber(DoneTag.bytes),
      ...growthOf(done),
      refused,
    };
  }
}

/** An init of an earlier version, in a container that was adopted, does not say it. */
export function growthOf(done: Records): Growth {
  return {
    made: done.number(DoneTag.entries) ?? 0,
    madeDirectories: done.number(DoneTag.directories) ?? 0,
  };
}

export function wholeNumber(value: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.floor(value)));
}

/** A code that is no refusal becomes `denied`: init refuses an entry only for the request or the disk. */
function refusalFrom(code: string, path: string, detail: string): FileRefusal {
  return refusalOf(code, path, detail) ?? new FileRefusal("denied", `${path}: ${printable(code)}`);
}

function* inRequests(paths: readonly string[]): Generator<readonly string[]> {
  let some: string[] = [];
  let bytes = 0;
  for (const path of paths) {
    refuseBadPath(path);
    const needed = Buffer.byteLength(path) + 5;
    if (bytes + needed > namesBytes) {
      yield some;
      some = [];
      bytes = 0;
    }
    some.push(path);
    bytes += needed;
  }
  if (some.length > 0) yield some;
}
