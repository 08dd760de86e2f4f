import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export const releaseBinary = `${root}build/init`;
export const sanitizeBinary = `${root}build/init-sanitize`;
export const fuzzBinary = `${root}build/fuzz-frames`;
export const fuzzArchiveBinary = `${root}build/fuzz-archive`;
export const fuzzUnpackBinary = `${root}build/fuzz-unpack`;
export const fuzzCloneBinary = `${root}build/fuzz-clone`;

let built = false;

/** Test files run side by side; make does not like company in one directory. */
export function build(): void {
  if (built) return;
  mkdirSync(`${root}build`, { recursive: true });
  execFileSync("flock", [`${root}build/.lock`, "make", "-C", root, "all", "sanitize", "fuzz"], {
    stdio: "pipe",
  });
  built = true;
}
