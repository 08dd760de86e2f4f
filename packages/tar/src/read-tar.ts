import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract, type Header } from "tar-stream";

export type TarType = "file" | "directory" | "symlink" | "hardlink";

export interface TarEntry {
  readonly type: TarType;
  /** As in the archive. */
  readonly path: string;
  readonly size: number;
  readonly mode: number;
  /** A link's target, as in the archive. */
  readonly target: string;
  /** Read it before the next entry, or not at all. */
  readonly content: AsyncIterable<Uint8Array>;
}

/** Makes the error of a problem. */
export type BadArchive = (problem: string) => Error;

/** The parser gets the archive in such pieces, and is at most a few of them behind. */
const pieceBytes = 64 * 1024;
/** Long names, pax records and empty blocks between two entries. tar-stream alone would read them without end. */
const maxGapBytes = 1024 * 1024;
const blockBytes = 512;

/** As tar-stream 3 has it; its own type lacks some. */
type ParsedHeader = Omit<Header, "type" | "linkname" | "pax"> & {
  readonly type: Header["type"] | null;
  readonly linkname: string | null;
  readonly pax: Readonly<Record<string, string>> | null;
  /** Of its content. */
  readonly byteOffset: number;
};

interface Progress {
  /** Given to the parser so far. */
  bytes: number;
  entries: number;
  /** Where the last entry ends, by its header. */
  entryEnd: number;
}

/**
 * The entries of a tar archive: ustar, with pax and GNU long names. Throws `bad` for an entry that is not a file, a
 * directory or a link, and for an archive that is damaged or cut short. Throws the source's own errors unchanged. Holds a few pieces.
 */
export async function* readTar(
  source: AsyncIterable<Uint8Array>,
  bad: BadArchive,
): AsyncGenerator<TarEntry, void, void> {
  // latin1 has one character a byte: a name that is not UTF-8 can then be refused.
  const options = { filenameEncoding: "latin1", allowUnknownFormat: true };
  const parser = extract(options as Parameters<typeof extract>[0]);
  const progress: Progress = { bytes: 0, entries: 0, entryEnd: 0 };
  let ofSource: { readonly error: unknown } | undefined;
  const pieces = async function* () {
    try {
      yield* inPieces(source, progress, bad);
    } catch (error) {
      ofSource = { error };
      throw error;
    }
  };
  const translated = (error: unknown) => (ofSource ? ofSource.error : bad(problemOf(error, progress)));
  const feeding = pipeline(Readable.from(pieces(), { highWaterMark: 1 }), parser as unknown as Writable);
  // The parser throws its error too.
  feeding.catch(() => {});
  try {
    for await (const stream of throwing(parser, translated)) {
      const entry = entryOf(stream.header as ParsedHeader, progress, bad);
      yield { ...entry, content: throwing(stream as AsyncIterable<Uint8Array>, translated) };
      stream.resume();
    }
    if (progress.bytes < blockBytes) throw bad("it is not a tar archive");
  } finally {
    parser.destroy();
    await feeding.catch(() => {});
  }
}

/** The same items, with translated errors. */
async function* throwing<T>(source: AsyncIterable<T>, translated: (error: unknown) => unknown) {
  const iterator = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await iterator.next().catch((error: unknown) => {
        throw translated(error);
      });
      if (done) return;
      yield value as T;
    }
  } finally {
    await iterator.return?.();
  }
}

async function* inPieces(
  source: AsyncIterable<Uint8Array>,
  progress: Progress,
  bad: BadArchive,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length; at += pieceBytes) {
      if (progress.bytes - progress.entryEnd > maxGapBytes)
        throw bad(`it has more than ${maxGapBytes} bytes between two entries, or after the last`);
      const piece = chunk.subarray(at, at + pieceBytes);
      progress.bytes += piece.length;
      yield piece;
    }
  }
}

function entryOf(header: ParsedHeader, progress: Progress, bad: BadArchive): Omit<TarEntry, "content"> {
  const { pax, byteOffset } = header;
  const path = pax?.path ? utf8Of(pax.path, bad) : fromLatin1(header.name, bad);
  const target = pax?.linkpath ? utf8Of(pax.linkpath, bad) : fromLatin1(header.linkname ?? "", bad);
  if (!Number.isSafeInteger(header.size)) throw bad("it has a number that is too large");
  progress.entries++;
  // The parser takes a directory's size for nothing.
  progress.entryEnd = byteOffset + (header.type === "directory" ? 0 : padded(header.size));
  if (Object.keys(pax ?? {}).some((key) => key.startsWith("GNU.sparse."))) throw bad("it has a sparse file");
  const type = typeOf(header, path, bad);
  return { type, path, target, size: type === "file" ? header.size : 0, mode: header.mode & 0o777 };
}

function typeOf({ type }: ParsedHeader, path: string, bad: BadArchive): TarType {
  switch (type) {
    case "file":
    case "contiguous-file":
      // The oldest tars have no type for directories.
      return path.endsWith("/") ? "directory" : "file";
    case "link":
      return "hardlink";
    case "symlink":
    case "directory":
      return type;
    default:
      throw bad(`${path} is neither a file nor a directory nor a link (type ${type ?? "unknown"})`);
  }
}

/** tar-stream's errors have no codes. */
function problemOf(error: unknown, { entries }: Progress): string {
  const cutShort = error instanceof Error && error.message === "Unexpected end of data";
  if (entries === 0) return "it is not a tar archive";
  return cutShort ? "it ends in the middle" : `the header of entry ${entries + 1} is damaged`;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function fromLatin1(name: string, bad: BadArchive): string {
  try {
    return utf8.decode(Buffer.from(name, "latin1"));
  } catch {
    throw bad(`it has a name that is not UTF-8: ${JSON.stringify(name)}`);
  }
}

/** Of a pax record, where tar-stream has put this character for what is not UTF-8. */
function utf8Of(name: string, bad: BadArchive): string {
  if (name.includes("\uFFFD")) throw bad(`it has a name that is not UTF-8: ${JSON.stringify(name)}`);
  return name;
}

function padded(size: number): number {
  return Math.ceil(size / blockBytes) * blockBytes;
}
