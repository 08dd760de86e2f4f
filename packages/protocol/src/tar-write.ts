import type { FileEntry } from "./files.ts";

const blockBytes = 512;

export interface TarItem {
  readonly path: string;
  readonly type: FileEntry["type"];
  readonly mode: number;
  readonly modifiedMs: number;
  /** Of a symlink. */
  readonly target?: string | undefined;
  /** Of a file. */
  readonly bytes?: Uint8Array | undefined;
}

/** What `archive` jobs carry both ways: a ustar archive, with pax headers for names that do not fit. Owner and group are left out. */
export function tarOf(items: readonly TarItem[]): Buffer {
  const parts = items.flatMap(itemParts);
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]);
}

/** What an entry adds to an archive. */
export function tarBytes(item: Pick<TarItem, "path" | "type" | "target">, contentBytes: number): number {
  const extra = paxBody(item);
  return blockBytes + padded(contentBytes) + (extra ? blockBytes + padded(extra.length) : 0);
}

/** The two empty blocks. */
export const tarEndBytes = 2 * blockBytes;

function itemParts(item: TarItem): Buffer[] {
  const extra = paxBody(item);
  const parts: Buffer[] = [];
  if (extra)
    parts.push(
      header({ name: "pax", flag: "x", size: extra.length, mode: 0o644, modifiedMs: 0 }),
      pad(extra),
    );
  const { type, mode, modifiedMs, target = "" } = item;
  const bytes = type === "file" ? (item.bytes ?? new Uint8Array()) : new Uint8Array();
  const flag = type === "directory" ? "5" : type === "symlink" ? "2" : "0";
  parts.push(
    header({ name: archiveName(item), flag, size: bytes.length, mode, modifiedMs, target }),
    pad(bytes),
  );
  return parts;
}

function archiveName({ path, type }: Pick<TarItem, "path" | "type">): string {
  return type === "directory" ? `${path}/` : path;
}

function header(of: {
  name: string;
  flag: string;
  size: number;
  mode: number;
  modifiedMs: number;
  target?: string;
}): Buffer {
  const block = Buffer.alloc(blockBytes);
  const octal = (value: number, width: number) =>
    `${Math.max(0, Math.floor(value)).toString(8).padStart(width, "0")}\0`;
  block.write(of.name, 0, 100);
  block.write(octal(of.mode & 0o777, 7), 100, "latin1");
  block.write(octal(0, 7) + octal(0, 7), 108, "latin1");
  block.write(octal(of.size, 11) + octal(of.modifiedMs / 1000, 11), 124, "latin1");
  block.write(" ".repeat(8) + of.flag, 148, "latin1");
  block.write(of.target ?? "", 157, 100);
  block.write("ustar\x0000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

/** Names that ustar has no room for, or whose alphabet it does not say. */
function paxBody(item: Pick<TarItem, "path" | "type" | "target">): Buffer | undefined {
  const fits = (name: string) => name.length <= 100 && /^[\x20-\x7e]*$/.test(name);
  const name = archiveName(item);
  const records = [
    ...(fits(name) ? [] : [paxRecord("path", name)]),
    ...(item.target === undefined || fits(item.target) ? [] : [paxRecord("linkpath", item.target)]),
  ];
  return records.length === 0 ? undefined : Buffer.concat(records);
}

/** The length at its front counts its own digits. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  length = rest + String(length).length;
  return Buffer.from(`${length} ${key}=${value}\n`);
}

function pad(bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes], padded(bytes.length));
}

function padded(size: number): number {
  return Math.ceil(size / blockBytes) * blockBytes;
}
