import { cp, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { type ProgramEnd, root, runProgram } from "./support/doc-blocks.ts";

const patches = ["add-job-kind.patch", "add-profile-field.patch"];
/** What the patches change, and what is type-checked with it. */
const parts = ["apps", "examples", "infra", "packages", "test"];
const settings = ["package.json", "tsconfig.json", "tsconfig.base.json", "vitest.config.ts"];
const madeByTools: ReadonlySet<string> = new Set(["dist", "build", ".berth", "__pycache__"]);

/** Outside of the repository: git would take the patches' paths for its own otherwise. */
async function copyOfTheTree(): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), "berth-patched-"));
  const filter = (source: string) => !madeByTools.has(basename(source));
  // The links of pnpm stay relative, so that packages find each other in the copy.
  const options = { recursive: true, verbatimSymlinks: true, filter };
  for (const part of [...parts, ...settings]) await cp(join(root, part), join(copy, part), options);
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

function inCopy(copy: string, command: string, args: readonly string[]): Promise<ProgramEnd> {
  return runProgram("sh", ["-c", 'cd "$0" && exec "$@"', copy, command, ...args]);
}

test("the patches of examples/ apply to this tree, and its types hold with them", {
  timeout: 300_000,
}, async () => {
  const copy = await copyOfTheTree();
  try {
    for (const patch of patches) {
      const file = join(root, "examples", patch);
      expect(await inCopy(copy, "git", ["apply", "--check", file]), patch).toMatchObject({ code: 0 });
      expect(await inCopy(copy, "git", ["apply", file]), patch).toMatchObject({ code: 0 });
    }
    const types = await inCopy(copy, join(root, "node_modules/.bin/tsc"), ["-b"]);
    expect(types).toMatchObject({ stdout: "", code: 0 });
  } finally {
    await rm(copy, { recursive: true });
  }
});

test("CONTRIBUTING.md and examples/README.md link each patch", async () => {
  for (const page of ["CONTRIBUTING.md", "examples/README.md"]) {
    const text = await readFile(join(root, page), "utf8");
    for (const patch of patches) expect(text, page).toContain(`${patch})`);
  }
});

test("each patch of examples/ is short and brings a test", async () => {
  for (const patch of patches) {
    const text = await readFile(join(root, "examples", patch), "utf8");
    const changed = [...text.matchAll(/^\+\+\+ b\/(.+)$/gm)].map(([, path = ""]) => path);
    const added = text.split("\n").filter((line) => line.startsWith("+"));
    expect(changed.some((path) => path.endsWith(".test.ts"))).toBe(true);
    expect(added.length, `${patch} is short`).toBeLessThan(70);
  }
});
