import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const programs = { btrfs: "mkfs.btrfs", xfs: "mkfs.xfs" } as const;
export type LoopFileSystem = keyof typeof programs;

const searchPath = "/usr/sbin:/sbin:/usr/bin:/bin";

/** Why a file system cannot be mounted from a file here; undefined when it can. */
export function noLoopMount(kind: LoopFileSystem): string | undefined {
  if (process.getuid?.() !== 0) return "mounting needs root";
  if (!readFileSync("/proc/filesystems", "utf8").split(/\s+/).includes(kind))
    return `this kernel has no ${kind}`;
  const program = programs[kind];
  if (!searchPath.split(":").some((folder) => existsSync(join(folder, program))))
    return `${program} is not installed; npm run setup installs it on Debian`;
  return undefined;
}

export interface LoopMount extends Disposable {
  readonly path: string;
}

/** A file system of the test's own in a file. */
export function loopMount(kind: LoopFileSystem, size = "600M"): LoopMount {
  const home = mkdtempSync(join(tmpdir(), `berth-${kind}-`));
  const [image, path] = [join(home, "image"), join(home, "mounted")];
  const run = (program: string, ...words: string[]) =>
    execFileSync(program, words, { env: { PATH: searchPath }, stdio: ["ignore", "ignore", "pipe"] });
  run("truncate", "-s", size, image);
  run(programs[kind], "-q", ...(kind === "xfs" ? ["-m", "reflink=1"] : []), image);
  mkdirSync(path);
  run("mount", "-o", "loop", image, path);
  return {
    path,
    [Symbol.dispose]: () => {
      run("umount", path);
      rmSync(home, { recursive: true });
    },
  };
}
