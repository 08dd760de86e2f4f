import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { cliPage } from "./cli-page.ts";
import { runCli } from "./support/cli.ts";

test("docs/cli.md equals the output of berth help and berth help all", async () => {
  const page = await readFile(new URL("../docs/cli.md", import.meta.url), "utf8");
  expect(page).toBe(await cliPage());
  const unframed = page.replaceAll(/^```.*\n|^## .*\n\n/gm, "");
  const { stdout: overview } = await runCli(["help"]);
  const { stdout: all } = await runCli(["help", "all"]);
  expect(unframed.endsWith(`${overview}\n${all}`)).toBe(true);
});
