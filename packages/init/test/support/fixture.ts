import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const made = new Map<string, string>();

/** A small hostile program of test/fixtures, compiled where every uid can run it. */
export function fixture(name: string): string {
  let path = made.get(name);
  if (path === undefined) {
    const dir = mkdtempSync(join(tmpdir(), "init-fixture-"));
    chmodSync(dir, 0o755);
    path = join(dir, name);
    const source = fileURLToPath(new URL(`../fixtures/${name}.c`, import.meta.url));
    execFileSync("cc", ["-O2", "-static", "-o", path, source]);
    made.set(name, path);
  }
  return path;
}
