import { Refusal } from "../run-context.ts";
import { ByteReader } from "./byte-reader.ts";

export type TarType = "file" | "directory" | "symlink" | "hardlink";

export interface TarEntry {
  readonly type: TarType;
  /** As the archive says it. */
  readonly path: string;
  readonly size: number;
  readonly mode: number;
  /** Of a link, as the archive says it. */
  readonly target: string;
  /** To be read before the next entry is asked for, or not at all. */
  readonly content: AsyncIterable<Uint8Array>;
}

const blockBytes = 512;
/** Of a long name or a pax record. */
const maxMetadataBytes = 1024 * 1024;

interface Metadata {
  path?: string;
  target?: string;
  size?: number;
}

/**
 * The entries of a tar archive: ustar, with pax and GNU long names. Whatever is not a file, a directory or a link is refused, and so
 * is an archive that is damaged or cut short. Holds one block at a time.
 */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry, void, void> {
  const reader = new ByteReader(source);
  try {
    yield* entries(reader);
  } finally {
    await reader.close();
  }
}

async function* entries(reader: ByteReader): AsyncGenerator<TarEntry, void, void> {
  let found: Metadata = {};
  for (let index = 0; ; index++) {
    const header = await reader.take(blockBytes);
    if (header.length === 0 && index > 0) return;
    if (header.length < blockBytes) throw index === 0 ? bad("it is not a tar archive") : cutShort();
    if (header.every((byte) => byte === 0)) return;
    if (!checksumFits(header)) {
      throw bad(index === 0 ? "it is not a tar archive" : `the header of entry ${index + 1} is damaged`);
    }
    const flag = String.fromCharCode(header[156] ?? 0);
    const headerSize = numberAt(header, 124, 12);
    if ("xgLK".includes(flag)) {
      const body = await metadataBody(reader, headerSize);
      if (flag !== "g") found = { ...found, ...metadata(flag, body) };
      continue;
    }
    const path = found.path ?? headerPath(header);
    const type = typeOf(flag, path);
    const size = type === "file" ? (found.size ?? headerSize) : 0;
    const end = reader.position + padded(size);
    yield {
      type,
      path,
      size,
      mode: numberAt(header, 100, 8) & 0o777,
      target: found.target ?? textAt(header, 157, 100),
      content: { [Symbol.asyncIterator]: () => reader.stream(size, cutShort) },
    };
    if (!(await reader.skip(end - reader.position))) throw cutShort();
    found = {};
  }
}

async function metadataBody(reader: ByteReader, size: number): Promise<Buffer> {
  if (size > maxMetadataBytes) throw bad("it has a name that is too long");
  const body = await reader.take(padded(size));
  if (body.length < padded(size)) throw cutShort();
  return body.subarray(0, size);
}

function cutShort(): Refusal {
  return bad("it ends in the middle");
}

function typeOf(flag: string, path: string): TarType {
  switch (flag) {
    case "0":
    case "\0":
    case "7":
      // The oldest tars have no type for directories.
      return path.endsWith("/") ? "directory" : "file";
    case "1":
      return "hardlink";
    case "2":
      return "symlink";
    case "5":
      return "directory";
    default:
      throw bad(`${path} is neither a file nor a directory nor a link (type ${JSON.stringify(flag)})`);
  }
}

function metadata(flag: string, body: Buffer): Metadata {
  if (flag === "L") return { path: text(untilNul(body)) };
  if (flag === "K") return { target: text(untilNul(body)) };
  const found: Metadata = {};
  for (const [key, value] of paxRecords(body)) {
    if (key === "path") found.path = value;
    if (key === "linkpath") found.target = value;
    if (key === "size") found.size = wholeNumber(value);
    if (key.startsWith("GNU.sparse.")) throw bad("it has a sparse file");
  }
  return found;
}

/** Each record is `<its own length> <key>=<value>\n`, counted in bytes. */
function* paxRecords(body: Buffer): Generator<[string, string]> {
  let at = 0;
  while (at < body.length) {
    const space = body.indexOf(" ", at);
    const length = space < 0 ? Number.NaN : wholeNumber(body.toString("latin1", at, space));
    const equals = body.indexOf("=", space);
    const end = at + length;
    if (!(length > 0) || end > body.length || equals < 0 || equals >= end || body[end - 1] !== 0x0a) {
      throw bad("it has a damaged pax header");
    }
    const key = text(body.subarray(space + 1, equals));
    // Other keys, such as extended attributes, may hold any bytes.
    const known = key === "path" || key === "linkpath" || key === "size";
    yield [key, known ? text(body.subarray(equals + 1, end - 1)) : ""];
    at = end;
  }
}

function headerPath(header: Buffer): string {
  const name = textAt(header, 0, 100);
  // GNU's own format uses the prefix's place for other things.
  const prefix = header.toString("latin1", 257, 263) === "ustar\0" ? textAt(header, 345, 155) : "";
  return prefix === "" ? name : `${prefix}/${name}`;
}

/** The sum of all bytes with the sum's own field as spaces; old tars added them up signed. */
function checksumFits(header: Buffer): boolean {
  let unsigned = 0;
  let signed = 0;
  for (const [index, byte] of header.entries()) {
    const counted = index >= 148 && index < 156 ? 0x20 : byte;
    unsigned += counted;
    signed += counted > 127 ? counted - 256 : counted;
  }
  const stated = Number.parseInt(textAt(header, 148, 8).trim(), 8);
  return stated === unsigned || stated === signed;
}

/** Octal digits, or from the first bit on a binary number for what they cannot say. */
function numberAt(header: Buffer, start: number, length: number): number {
  const field = header.subarray(start, start + length);
  if ((field[0] ?? 0) & 0x80) {
    const value = field.reduce((sum, byte, index) => sum * 256 + (index === 0 ? byte & 0x7f : byte), 0);
    if (!Number.isSafeInteger(value)) throw bad("it has a number that is too large");
    return value;
  }
  const digits = untilNul(field).toString("latin1").trim();
  if (!/^[0-7]*$/.test(digits)) throw bad("it has a damaged number");
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}

function wholeNumber(digits: string): number {
  const value = /^\d{1,16}$/.test(digits) ? Number(digits) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw bad("it has a damaged pax header");
  return value;
}

function textAt(header: Buffer, start: number, length: number): string {
  return text(untilNul(header.subarray(start, start + length)));
}

function untilNul(bytes: Buffer): Buffer {
  const end = bytes.indexOf(0);
  return end < 0 ? bytes : bytes.subarray(0, end);
}

function text(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw bad(`it has a name that is not UTF-8: ${JSON.stringify(bytes.toString("latin1"))}`);
  }
}

function padded(size: number): number {
  return Math.ceil(size / blockBytes) * blockBytes;
}

export function bad(problem: string): Refusal {
  return new Refusal("bad-archive", `the archive cannot be unpacked: ${problem}`);
}
