import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { layerText } from "../profile-texts.ts";
import { wholeNumber } from "../values.ts";

const options = {} as const;

export const profileRollback = command({
  name: "profile rollback",
  summary: "restore an earlier version of a live layer",
  positionals: ["LAYER", "VERSION"],
  about: "The rollback is itself a change, with a new version.",
  examples: [{ line: "berth profile rollback tenant.acme 7", note: "7 is in `berth profile history`" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [layer = "", version = ""] = positionals;
  const now = await (await context.door()).profiles.rollback(layer, wholeNumber("VERSION", version));
  await context.terminal.answer(now, () => layerText(now));
  return exitCodes.ok;
}
