import { readFile } from "node:fs/promises";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";

const options = {} as const;

export const version = command({
  name: "version",
  summary: "which version this is",
  positionals: [],
  examples: [
    { line: "berth version", says: "" },
    { line: "berth version --json", says: "with Node's" },
  ],
  options,
  run,
});

async function run(_: Arguments<typeof options>, { terminal }: Context): Promise<number> {
  const manifest = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));
  await terminal.answer(
    { version: manifest.version, node: process.version },
    () => `berth ${manifest.version}`,
  );
  return exitCodes.ok;
}
