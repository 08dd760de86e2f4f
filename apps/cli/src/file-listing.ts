import { byteSize, type FileEntry } from "@berth/protocol";
import { printable } from "./terminal/printable.ts";
import { modeText } from "./terminal/quantities.ts";
import { table } from "./terminal/table.ts";

const letters = { file: "-", directory: "d", symlink: "l", other: "?" } as const;

export function shortName({ path, type }: FileEntry): string {
  return printable(path) + (type === "directory" ? "/" : "");
}

export function longListing(entries: readonly FileEntry[]): string {
  if (entries.length === 0) return "";
  const rows = entries.map((entry) => [
    letters[entry.type] + modeText(entry.mode),
    byteSize(entry.size),
    new Date(entry.modifiedMs).toISOString().slice(0, 19).replace("T", " "),
    `${shortName(entry)}${entry.target === undefined ? "" : ` -> ${printable(entry.target)}`}`,
  ]);
  return table(["MODE", "SIZE", "CHANGED (UTC)", "PATH"], rows);
}
