import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import {
  brokenLinks,
  docBlocks,
  fits,
  oneLine,
  type ProgramEnd,
  root,
  runProgram,
  statedOutput,
} from "./support/doc-blocks.ts";
import { patient, type Reader, test } from "./support/reader.ts";

const folder = "docs/guides";
const pages = (await readdir(join(root, folder))).filter((name) => name.endsWith(".md"));
const program = join(root, "apps/cli/src/main.ts");

describe.for(pages.map((name) => join(folder, name)))("%s", (page) => {
  test("leads somewhere with every link", async () => {
    expect(await brokenLinks(page)).toEqual([]);
  });

  test("has commands and programs that do what it says", patient, async ({ reader, scratch }) => {
    const berth = `#!/bin/sh\nexec "${process.execPath}" --conditions=@berth/source "${program}" "$@"\n`;
    await writeFile(join(scratch, "berth"), berth, { mode: 0o755 });
    for (const { language, code, line } of await docBlocks(page, ["sh", "ts"])) {
      const end = language === "sh" ? await shell(code, reader, scratch) : await runSource(code, reader);
      const { stdout } = end;
      expect({ line, ...end }).toMatchObject({ code: 0, stderr: language === "ts" ? "" : end.stderr });
      const stated = language === "ts" ? statedOutput(code) : printed(code);
      if (stated !== "" && !fits(stated, stdout)) expect(oneLine(stdout)).toBe(oneLine(stated));
    }
  });
});

/** What the lines behind `#>` of a block state that its commands print. */
function printed(code: string): string {
  return [...code.matchAll(/^#> (.*)$/gm)].map(([, text]) => text).join("\n");
}

/** As a reader types it, in a directory of the page's own. */
function shell(code: string, reader: Reader, directory: string): Promise<ProgramEnd> {
  const { DOCKER_HOST } = process.env;
  return runProgram("sh", ["-euc", `cd "${directory}"\n${code}`], {
    ...reader,
    ...(DOCKER_HOST === undefined ? {} : { DOCKER_HOST }),
    HOME: directory,
    PATH: `${directory}:${process.env.PATH}`,
  });
}

/** Beside the packages that it imports. */
async function runSource(code: string, reader: Reader): Promise<ProgramEnd> {
  const file = join(root, "examples", `.guide-${process.pid}.ts`);
  await writeFile(file, code);
  try {
    return await runProgram(process.execPath, ["--conditions=@berth/source", file], reader);
  } finally {
    await rm(file);
  }
}
