import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { keyPage } from "./key-page.ts";

test("docs/redis-keys.md lists every key as the code spells it", async () => {
  expect(await readFile(new URL("../docs/redis-keys.md", import.meta.url), "utf8")).toBe(keyPage());
});

test("every variable part of a key has a name on the page", () => {
  expect(keyPage()).not.toContain("undefined");
});
