import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sharedDir } from "./shared-dir.ts";

/** A small hostile program of test/fixtures, compiled. */
export function fixture(name: string): string {
  const path = join(sharedDir(), name);
  if (!existsSync(path)) {
    const source = fileURLToPath(new URL(`../fixtures/${name}.c`, import.meta.url));
    execFileSync("cc", ["-O2", "-static", "-o", path, source]);
  }
  return path;
}
