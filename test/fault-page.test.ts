import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { faultPage } from "./fault-page.ts";

test("docs/faults.md equals the fault table", async () => {
  const page = await readFile(new URL("../docs/faults.md", import.meta.url), "utf8");
  expect(page).toBe(faultPage());
});
