import { glob, readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { describedKeys, keyPage } from "./key-page.ts";

test("docs/redis-keys.md lists every key as the code spells it", async () => {
  expect(await readFile(new URL("../docs/redis-keys.md", import.meta.url), "utf8")).toBe(keyPage());
});

test("every variable part of a key has a name on the page", () => {
  expect(keyPage()).not.toContain("undefined");
});

test("every field that the page describes is one that the ledger spells", async () => {
  const ledger = new URL("../packages/ledger/", import.meta.url);
  let code = "";
  for await (const file of glob("{lua,src}/**/*.{lua,ts}", { cwd: ledger }))
    if (!file.endsWith("records.ts")) code += await readFile(new URL(file, ledger), "utf8");
  const words = new Set(code.match(/(?<=['"])\w+(?=['"])|\b\w+(?=\??:)/g));
  const fields = describedKeys().flatMap(({ record }) =>
    record.type === "hash" ? Object.keys(record.fields) : [],
  );
  expect(fields.filter((field) => /^\w+$/.test(field) && !words.has(field))).toEqual([]);
});
