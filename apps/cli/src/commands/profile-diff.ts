import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { changesText } from "../profile-texts.ts";
import { settingOptions, settingsGiven } from "./profile-set.ts";

export const profileDiff = command({
  name: "profile diff",
  summary: "preview a change of a live layer",
  positionals: ["LAYER", "[FIELD=VALUE...]"],
  about: "Takes the arguments of `berth profile set`, fails where that would fail, and changes nothing.",
  examples: [{ line: "berth profile diff tenant.acme --file acme.yaml", note: "" }],
  options: settingOptions,
  run,
});

async function run(
  { values, positionals }: Arguments<typeof settingOptions>,
  context: Context,
): Promise<number> {
  const [layer = "", ...assignments] = positionals;
  const { profiles } = await context.door();
  const known = (await profiles.get(layer))?.settings ?? {};
  const changes = await profiles.diff(layer, await settingsGiven(values, assignments, known, context));
  await context.terminal.answer({ changes }, () => changesText(changes));
  return exitCodes.ok;
}
