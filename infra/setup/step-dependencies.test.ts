import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Context, newContext } from "./context.mjs";
import { dependenciesStep } from "./step-dependencies.mjs";

let root: string;
let context: Context;

// Stands in for pnpm: notes its arguments, and makes the folders that a real one would.
const PNPM = `#!/bin/sh
echo "$@" >> calls
[ ! -e broken ] || exit 1
mkdir -p packages/one/node_modules
`;

beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), "berth-dependencies-"));
  mkdirSync(path.join(root, "packages/one"), { recursive: true });
  writeFileSync(path.join(root, "package.json"), "{}");
  writeFileSync(path.join(root, "packages/one/package.json"), '{ "dependencies": { "zod": "4" } }');
  writeFileSync(path.join(root, "pnpm-lock.yaml"), "lockfileVersion: 9\n");
  writeFileSync(path.join(root, "pnpm"), PNPM, { mode: 0o755 });
  context = { ...newContext(root), pnpm: path.join(root, "pnpm") };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const isReady = async () => (await dependenciesStep.find(context)).ready;
const make = () => dependenciesStep.make(context, () => undefined);

test("dependencies that were installed once, with the lockfile frozen, are not installed again", async () => {
  expect(await isReady()).toBe(false);
  await make();
  expect(await isReady()).toBe(true);
  expect(readFileSync(path.join(root, "calls"), "utf8")).toMatch(/^install --frozen-lockfile .*\n$/);
});

test.for([
  ["the lockfile changed", () => appendFileSync(path.join(root, "pnpm-lock.yaml"), "more\n")],
  ["a package.json changed", () => appendFileSync(path.join(root, "packages/one/package.json"), "\n")],
  [
    "a package was added",
    () => {
      mkdirSync(path.join(root, "packages/two"));
      writeFileSync(path.join(root, "packages/two/package.json"), "{}");
    },
  ],
  ["they were removed", () => rmSync(path.join(root, "packages/one/node_modules"), { recursive: true })],
] as const)("dependencies count as missing when %s", async ([, change]) => {
  await make();
  change();
  expect(await isReady()).toBe(false);
});

test("a failed install of dependencies is repeated next time, and prints pnpm's output", async () => {
  writeFileSync(path.join(root, "broken"), "");
  await expect(make()).rejects.toMatchObject({ logFile: ".berth/log/dependencies.log" });
  expect(await isReady()).toBe(false);
});

test("set-up of a clone without its lockfile fails with the way to get it back", async () => {
  rmSync(path.join(root, "pnpm-lock.yaml"));
  expect(await isReady()).toBe(false);
  await expect(make()).rejects.toMatchObject({ fix: ["git checkout -- pnpm-lock.yaml"] });
});
