import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { configPage } from "./config-page.ts";

test("docs/configuration.md says what the schemas say", async () => {
  const page = await readFile(new URL("../docs/configuration.md", import.meta.url), "utf8");
  expect(page).toBe(configPage());
});
