import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { profilePage } from "./profile-page.ts";

test("docs/profiles.md is what the schema of a profile says", async () => {
  expect(await readFile(new URL("../docs/profiles.md", import.meta.url), "utf8")).toBe(profilePage());
});
