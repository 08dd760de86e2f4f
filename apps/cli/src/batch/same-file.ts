import { stat } from "node:fs/promises";

/** Whether two paths lead to one file, also through a link. One that is not there is only the same under the same path. */
export async function isSameFile(one: string, other: string): Promise<boolean> {
  if (one === other) return true;
  const [a, b] = await Promise.all(
    [one, other].map((path) => stat(path, { bigint: true }).catch(() => undefined)),
  );
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}
