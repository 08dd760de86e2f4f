import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

let dir: string | undefined;

/** A directory that every uid can reach, unlike a checkout below a home directory. Removed after the test file. */
export function sharedDir(): string {
  if (dir === undefined) {
    dir = mkdtempSync(join(tmpdir(), "init-shared-"));
    chmodSync(dir, 0o755);
  }
  return dir;
}

afterAll(() => {
  if (dir !== undefined) rmSync(dir, { recursive: true, force: true });
  dir = undefined;
});
