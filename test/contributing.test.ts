import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./support/doc-blocks.ts";

/** Rows of a table whose first cell is a file or folder, and whose last one quotes what is there. */
async function places(): Promise<{ path: string; quoted: string }[]> {
  const page = await readFile(join(root, "CONTRIBUTING.md"), "utf8");
  const rows = page.matchAll(/^\| `((?:apps|packages|test)\/[^`]+)` \|.*\| `([^`]+)` \|$/gm);
  return [...rows].map(([, path = "", quoted = ""]) => ({ path, quoted }));
}

/** One file, or all files of a folder. */
async function sources(path: string): Promise<string> {
  if (!path.endsWith("/")) return await readFile(join(root, path), "utf8");
  const names = (await readdir(join(root, path))).filter((name) => name.endsWith(".ts"));
  return (await Promise.all(names.map((name) => readFile(join(root, path, name), "utf8")))).join("\n");
}

const shown = await places();

test("CONTRIBUTING.md walks through a job kind, a profile field and a door", () => {
  const paths = shown.map(({ path }) => path);
  expect(paths).toContain("packages/protocol/src/job-kinds.ts");
  expect(paths).toContain("packages/protocol/src/profile.ts");
  expect(paths).toContain("apps/gateway/src/routes/index.ts");
});

test.for(shown)("CONTRIBUTING.md quotes what $path contains: $quoted", async ({ path, quoted }) => {
  expect(await sources(path)).toContain(quoted);
});
