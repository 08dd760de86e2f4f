import { execFile, execFileSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { build, releaseBinary } from "./support/build.ts";
import { isRoot } from "./support/init-process.ts";

const nobody = 65_534;
const run = promisify(execFile);

beforeAll(build);

/** A folder of a user's without privileges, where the tree and its copies are. */
function place(): string {
  const dir = mkdtempSync(join(tmpdir(), "init-clone-"));
  onTestFinished(() => {
    execFileSync("chmod", ["-R", "u+rwX", dir]);
    rmSync(dir, { recursive: true });
  });
  copyFileSync(releaseBinary, join(dir, "init"));
  mkdirSync(join(dir, "from"));
  chmodSync(dir, 0o755);
  if (isRoot) for (const path of [dir, join(dir, "from")]) chownSync(path, nobody, nobody);
  return dir;
}

const user = isRoot ? { uid: nobody, gid: nobody } : {};

function sh(dir: string, script: string): string {
  return execFileSync("sh", ["-ec", script], { cwd: dir, encoding: "utf8", ...user });
}

async function clone(dir: string, to: string): Promise<Record<string, unknown>> {
  mkdirSync(join(dir, to));
  if (isRoot) chownSync(join(dir, to), nobody, nobody);
  const { stdout } = await run("./init", ["clone", "from", to], { cwd: dir, ...user });
  return JSON.parse(stdout);
}

test("copies of one tree at the same time are whole and alike, although its owner may not read some of it", async () => {
  const dir = place();
  const count = 300;
  sh(
    dir,
    `cd from; i=0; while [ $i -lt ${count} ]; do mkdir d$i; echo $i > d$i/f; chmod 000 d$i/f d$i; i=$((i+1)); done`,
  );
  const closed = (tree: string) => sh(dir, `ls -l ${tree} | grep -c '^d---------'`).trim();
  for (let round = 0; round < 2; round++) {
    const names = ["a", "b", "c", "d"].map((name) => `${name}${round}`);
    const copies = await Promise.all(names.map((name) => clone(dir, name)));
    expect(copies).toEqual(names.map(() => expect.objectContaining({ entries: 2 * count, copied: count })));
    expect(["from", ...names].map(closed)).toEqual(["from", ...names].map(() => String(count)));
  }
});

test("a copy of holes that are larger than a JSON number reports the largest such number as its size", async () => {
  const dir = place();
  sh(dir, "cd from; i=0; while [ $i -lt 700 ]; do truncate -s 15T f$i; i=$((i+1)); done");
  expect(await clone(dir, "to")).toMatchObject({ entries: 700, bytes: Number.MAX_SAFE_INTEGER });
  expect(sh(dir, "stat -c %s to/f699").trim()).toBe(String(15 * 2 ** 40));
});
