import type { FileEntry } from "@berth/protocol";
import { type Header, pack } from "tar-stream";

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

const blockBytes = 512;
/** tar-stream counts seconds in 32 bits. */
const maxSeconds = 2 ** 31 - 1;

/** Makes the archive of an `archive` job: ustar, with pax headers for names that do not fit, and without owner and group. */
export async function packTar(items: readonly TarItem[]): Promise<Buffer> {
  const packing = pack();
  for (const item of items) packing.entry(headerOf(item), item.type === "file" ? bytesOf(item) : "");
  packing.finalize();
  const parts: Uint8Array[] = [];
  for await (const part of packing as AsyncIterable<Uint8Array>) parts.push(part);
  return Buffer.concat(parts);
}

/** The least bytes of an archive of these files. Long names add to it. */
export function minTarBytes(contentBytes: readonly number[]): number {
  return contentBytes.reduce((sum, bytes) => sum + blockBytes + padded(bytes), 2 * blockBytes);
}

function headerOf({ path, type, mode, modifiedMs, target }: TarItem): Partial<Header> & { name: string } {
  return {
    name: type === "directory" ? `${path}/` : path,
    type: type === "directory" || type === "symlink" ? type : "file",
    // With the type's bits: tar-stream replaces a mode of 0 by its default.
    mode: (mode & 0o777) | (type === "directory" ? 0o040000 : type === "symlink" ? 0o120000 : 0o100000),
    mtime: new Date(Math.min(Math.max(0, Math.floor(modifiedMs / 1000)), maxSeconds) * 1000),
    ...(type === "symlink" ? { linkname: target ?? "" } : {}),
  };
}

function bytesOf({ bytes = new Uint8Array() }: TarItem): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function padded(size: number): number {
  return Math.ceil(size / blockBytes) * blockBytes;
}
