import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import {
  brokenLinks,
  type DocBlock,
  docBlocks,
  fits,
  oneLine,
  type ProgramEnd,
  root,
  runProgram,
  statedOutput,
} from "./support/doc-blocks.ts";
import { programArguments } from "./support/program.ts";
import { type Grounds, patient, type Reader, test } from "./support/reader.ts";

const folder = "docs/guides";
const pages = (await readdir(join(root, folder))).filter((name) => name.endsWith(".md"));

/** Commands of `console` blocks that this test cannot run: the test that does, and what it calls there. */
const ranElsewhere: Readonly<Record<string, readonly [file: string, call: string]>> = {
  "git clone <this repository> berth && cd berth": ["infra/setup/setup.test.ts", "setUp("],
  "npm start": ["test/scenarios/cli-dev.test.ts", '"tour"'],
  // It changes the engine of the machine. What the runtime then does is tested where it is registered.
  "sudo runsc install && sudo systemctl restart docker": [
    "test/scenarios/sandbox-runtimes.test.ts",
    '"runsc"',
  ],
};

describe.for(pages.map((name) => join(folder, name)))("%s", (page) => {
  test("every link of a guide leads somewhere", async () => {
    expect(await brokenLinks(page)).toEqual([]);
  });

  test("commands and programs of a guide do what the guide says", patient, async ({ grounds, scratch }) => {
    await layOut(scratch);
    for (const block of await docBlocks(page, ["sh", "ts", "console", "json"])) {
      if (block.language === "sh") await runShell(block, grounds.reader, scratch);
      else if (block.language === "ts") await runSource(block, grounds.reader, scratch);
      else if (block.language === "console") await runServices(block, grounds);
      else JSON.parse(block.code);
    }
  });

  test("a guide hides no exit code of a command that a reader copies", async () => {
    const lines = (await readFile(join(root, page), "utf8")).split("\n");
    expect(lines.filter((line) => /\|\| *(true|:|echo)\b/.test(line))).toEqual([]);
  });
});

/** What a reader has in a clone: the command, and a folder whose programs find the packages. */
async function layOut(scratch: string): Promise<void> {
  const command = [process.execPath, ...programArguments("apps/cli/src/main.ts")];
  const berth = `#!/bin/sh\nexec ${command.map((word) => `"${word}"`).join(" ")} "$@"\n`;
  await writeFile(join(scratch, "berth"), berth, { mode: 0o755 });
  // Claude Code keeps such a line and later starts what is behind `--`: so does this, and asks for the tools.
  const claude = `#!/bin/sh
while [ "$1" != -- ]; do shift; done; shift
printf '%s\\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' | "$@" | grep -q serverInfo
`;
  await writeFile(join(scratch, "claude"), claude, { mode: 0o755 });
  await mkdir(join(scratch, "examples"));
  await symlink(join(root, "examples/node_modules"), join(scratch, "examples/node_modules"));
}

/** As a reader types it, in a directory of the page's own. Its last command may fail if the block states `exit code N`. */
async function runShell({ code, line }: DocBlock, reader: Reader, directory: string): Promise<void> {
  const { DOCKER_HOST } = process.env;
  const end = await runProgram("sh", ["-euc", `cd "${directory}"\n${code}`], {
    ...reader,
    ...(DOCKER_HOST === undefined ? {} : { DOCKER_HOST }),
    HOME: directory,
    PATH: `${directory}:${process.env.PATH}`,
  });
  const stated = printed(code);
  const failed = /(?:^|\n)exit code (\d+)$/.exec(stated)?.[1] ?? "0";
  expect({ line, ...end }).toMatchObject({ code: Number(failed) });
  compare(stated.replace(/\n?exit code \d+$/, ""), end);
}

/** What the lines behind `#>` of a block state that its commands print. */
function printed(code: string): string {
  return [...code.matchAll(/^#> (.*)$/gm)].map(([, text]) => text).join("\n");
}

/** Saved where its first line says, beside the packages that it imports. */
async function runSource({ code, line }: DocBlock, reader: Reader, scratch: string): Promise<void> {
  const name = /^\/\/ examples\/(\S+\.ts)\n/.exec(code)?.[1] ?? `line-${line}.ts`;
  const file = join(scratch, "examples", name);
  await writeFile(file, code);
  const end = await runProgram(process.execPath, ["--conditions=@berth/source", file], reader);
  expect({ line, ...end }).toMatchObject({ code: 0, stderr: "" });
  compare(statedOutput(code), end);
}

function compare(stated: string, { stdout }: ProgramEnd): void {
  if (stated !== "" && !fits(stated, stdout)) expect(oneLine(stdout)).toBe(oneLine(stated));
}

/** Workers and gateways stay until the file's fleet ends. They run from source, with the reader's Redis. */
async function runServices({ code, line }: DocBlock, { fleet, gateways, env }: Grounds): Promise<void> {
  for (const [, command = ""] of code.replaceAll("\\\n", " ").matchAll(/^\$ (.*)$/gm)) {
    const elsewhere = ranElsewhere[command];
    if (elsewhere !== undefined) {
      const [file, call] = elsewhere;
      expect(await readFile(join(root, file), "utf8"), command).toContain(call);
      continue;
    }
    const app = /^(?:\w+=\S* +)*node apps\/(worker|gateway)\/dist\/main\.js$/.exec(command)?.[1];
    const own = { ...settingsOf(command), ...env };
    if (app === "worker") await fleet.worker(own.BERTH_WORKER_ID ?? "", own);
    else if (app === "gateway") await gateways.start(own);
    else expect.fail(`line ${line}: no test runs ${command}`);
  }
}

/** The command's own, without what names a place of the reader's. */
function settingsOf(command: string): Record<string, string> {
  const all = [...command.matchAll(/(\w+)=(\S+)/g)].map(([, name = "", value = ""]) => [name, value]);
  return Object.fromEntries(all.filter(([name, value]) => name !== "REDIS_URL" && !value?.startsWith("$")));
}
