import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test as base, expect } from "vitest";
import { builtCommand, commandFolder } from "./built-command.mjs";

const test = base.extend<{ clone: Clone }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  clone: async ({}, use) => {
    const clone = new Clone(await mkdtemp(join(tmpdir(), "berth-built-")));
    try {
      for (const file of ["apps/cli/src/main.ts", "packages/ledger/lua/submit.lua", "pnpm-lock.yaml"])
        await clone.write(file, 1);
      await use(clone);
    } finally {
      await rm(clone.root, { recursive: true });
    }
  },
});

/** Files with times of the test's own, in seconds; folders are as old as the oldest. */
class Clone {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  async write(file: string, seconds: number): Promise<void> {
    const path = join(this.root, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, "");
    await utimes(path, seconds, seconds);
    await utimes(dirname(path), 1, 1);
  }

  build(seconds: number): Promise<void> {
    return this.write(join(commandFolder(""), "lib/apps/cli/dist/main.js"), seconds);
  }
}

test("the built command is used while it is no older than every source", async ({ clone }) => {
  expect(builtCommand(clone.root)).toBeUndefined();
  await clone.build(5);
  expect(builtCommand(clone.root)).toBe(join(commandFolder(clone.root), "lib/apps/cli/dist/main.js"));
  await clone.write("packages/ledger/lua/submit.lua", 6);
  expect(builtCommand(clone.root)).toBeUndefined();
  await clone.build(7);
  expect(builtCommand(clone.root)).toBeDefined();
});

test("the built command is not used after a source was removed or a dependency changed", async ({
  clone,
}) => {
  await clone.build(5);
  await rm(join(clone.root, "apps/cli/src/main.ts"));
  expect(builtCommand(clone.root)).toBeUndefined();
  await utimes(join(clone.root, "apps/cli/src"), 1, 1);
  expect(builtCommand(clone.root)).toBeDefined();
  await clone.write("pnpm-lock.yaml", 9);
  expect(builtCommand(clone.root)).toBeUndefined();
});
