import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { historyText } from "../profile-texts.ts";

const options = {} as const;

export const profileHistory = command({
  name: "profile history",
  summary: "the last 50 changes of a live layer",
  positionals: ["LAYER"],
  examples: [{ line: "berth profile history tenant.acme", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const entries = await (await context.door()).profiles.history(positionals[0] ?? "");
  await context.terminal.answer({ entries }, () => historyText(entries));
  return exitCodes.ok;
}
