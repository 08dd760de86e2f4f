import { stat } from "node:fs/promises";

/** Whether two paths lead to one file, also through a link. Missing files are the same only if their paths are equal. */
export async function isSameFile(one: string, other: string): Promise<boolean> {
  if (one === other) return true;
  const [a, b] = await Promise.all(
    [one, other].map((path) => stat(path, { bigint: true }).catch(() => undefined)),
  );
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}
