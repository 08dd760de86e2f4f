import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { ownVersion } from "../own-version.ts";

const options = {} as const;

export const version = command({
  name: "version",
  summary: "which version this is",
  positionals: [],
  examples: [
    { line: "berth version", note: "" },
    { line: "berth version --json", note: "with Node's" },
  ],
  options,
  run,
});

async function run(_: Arguments<typeof options>, { terminal }: Context): Promise<number> {
  const own = await ownVersion();
  await terminal.answer({ version: own, node: process.version }, () => `berth ${own}`);
  return exitCodes.ok;
}
