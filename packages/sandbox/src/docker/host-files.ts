import { randomBytes } from "node:crypto";
import { lstat, mkdir, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

export function ignoreExisting(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
}

/** Whether there is a file, a directory or a link at the path. False also if it cannot be inspected. */
export function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

/** Writes a note that only the worker's user can read. A reader finds the former one or this one, never a part of it. */
export async function writeNote(path: string, value: unknown): Promise<void> {
  const aside = `${path}.${randomBytes(8).toString("hex")}`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(aside, JSON.stringify(value), { mode: 0o600 });
  await rename(aside, path);
}
