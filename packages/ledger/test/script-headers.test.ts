import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const folder = new URL("../lua/", import.meta.url);
const texts = new Map(
  readdirSync(folder).map((name) => [name, readFileSync(new URL(name, folder), "utf8")] as const),
);
const included = new Set(
  [...texts.values()].flatMap((text) =>
    [...text.matchAll(/^--- @include (\S+)$/gm)].map(([, name]) => name ?? ""),
  ),
);
const runnable = [...texts].filter(([name]) => !included.has(name));

test("every script that Redis runs declares its flags, and no shared part of a script does", () => {
  expect(runnable.filter(([, text]) => !text.startsWith("#!lua")).map(([name]) => name)).toEqual([]);
  const parts = [...included].filter((name) => texts.get(name)?.startsWith("#!") !== false);
  expect(parts).toEqual([]);
});

test("a Redis that is full refuses only the scripts that bring something new: jobs, batches, artifacts, snapshots", () => {
  const refused = runnable.filter(([, text]) => !/^#!lua flags=.*\ballow-oom\b/.test(text));
  expect(refused.map(([name]) => name).sort()).toEqual([
    "accept.lua",
    "artifact-add.lua",
    "batch-open.lua",
    "snapshot-put.lua",
    "stage.lua",
    "submit.lua",
  ]);
});
