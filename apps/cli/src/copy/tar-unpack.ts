import type { TarItem } from "@berth/protocol";
import { Complaint } from "../complaint.ts";

/** One entry of an archive. Paths are relative, with slashes. */
export interface TarEntry extends TarItem {
  readonly type: "file" | "directory" | "symlink";
}

const blockBytes = 512;
const types: Readonly<Record<string, TarEntry["type"]>> = {
  "0": "file",
  "\0": "file",
  "5": "directory",
  "2": "symlink",
};

/** The entries of an archive that a worker made. What is not a file, a directory or a symlink is not in those. */
export function* unpackTar(archive: Buffer): Generator<TarEntry> {
  let pax = new Map<string, string>();
  for (let at = 0; at + blockBytes <= archive.length; ) {
    const block = archive.subarray(at, at + blockBytes);
    if (block.every((byte) => byte === 0)) return;
    const size = number(block, 124, 12);
    const bytes = archive.subarray(at + blockBytes, at + blockBytes + size);
    if (bytes.length < size) throw new Complaint("an archive from the sandbox ends too early");
    at += blockBytes + Math.ceil(size / blockBytes) * blockBytes;
    const flag = text(block, 156, 1);
    if (flag === "x") {
      pax = records(bytes);
      continue;
    }
    const type = types[flag === "" ? "\0" : flag];
    if (!type) throw new Complaint(`an archive from the sandbox has an entry of the unknown type ${flag}`);
    const path = (pax.get("path") ?? text(block, 0, 100)).replace(/\/+$/, "");
    const target = type === "symlink" ? (pax.get("linkpath") ?? text(block, 157, 100)) : undefined;
    const mode = number(block, 100, 8) & 0o777;
    yield { path, type, mode, modifiedMs: number(block, 136, 12) * 1_000, target, bytes };
    pax = new Map();
  }
}

function text(block: Buffer, from: number, length: number): string {
  const field = block.subarray(from, from + length);
  const end = field.indexOf(0);
  return field.subarray(0, end < 0 ? length : end).toString();
}

function number(block: Buffer, from: number, length: number): number {
  return Number.parseInt(text(block, from, length).trim() || "0", 8);
}

/** `<length> <key>=<value>\n`, one after the other. */
function records(body: Buffer): Map<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at < body.length; ) {
    const length = Number.parseInt(body.subarray(at, at + 20).toString("latin1"), 10);
    if (!(length > 0)) throw new Complaint("an archive from the sandbox has a record that cannot be read");
    const record = body
      .subarray(at, at + length)
      .toString()
      .replace(/\n$/, "");
    const [, key = "", value = ""] = /^\d+ ([^=]+)=(.*)$/s.exec(record) ?? [];
    found.set(key, value);
    at += length;
  }
  return found;
}
