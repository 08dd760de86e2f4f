import { FrameError, ItemTag, type Records } from "@berth/init";
import type { EntryType, FileEntry } from "@berth/protocol";

export const maxPathBytes = 8_192;

const typesByLetter: Record<string, EntryType> = { f: "file", d: "directory", l: "symlink", o: "other" };

export function entryType(value: Buffer | undefined): EntryType {
  return typesByLetter[value?.toString("latin1") ?? ""] ?? "other";
}

export function readEntry(item: Records): FileEntry {
  const target = boundedText(item, ItemTag.target, maxPathBytes);
  return {
    path: boundedText(item, ItemTag.path, maxPathBytes) ?? "",
    type: entryType(item.bytes(ItemTag.type)),
    size: item.number(ItemTag.size) ?? 0,
    mode: item.number(ItemTag.mode) ?? 0,
    modifiedMs: item.number(ItemTag.mtimeMs) ?? 0,
    ...(target === undefined ? {} : { target }),
  };
}

export function boundedText(item: Records, tag: number, maxBytes: number): string | undefined {
  const value = item.bytes(tag);
  if (value !== undefined && value.length > maxBytes)
    throw new FrameError(`record ${tag} has ${value.length} bytes`);
  return value?.toString("utf8");
}
