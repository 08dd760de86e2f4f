import { type Arguments, command } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { type Settings, settingsIn, withAssignments, withoutFields } from "../profile-settings.ts";
import { layerText } from "../profile-texts.ts";
import { wholeNumber } from "../values.ts";

export const settingOptions = {
  unset: { type: "string", multiple: true, value: "FIELD", about: "take this field out of the layer" },
  file: { type: "string", short: "f", value: "FILE", about: "the whole layer as YAML or JSON" },
} as const;

const options = {
  ...settingOptions,
  "if-version": {
    type: "string",
    value: "N",
    about: "refuse if the layer is not at this version; 0: if there is one",
  },
} as const;

export const profileSet = command({
  name: "profile set",
  summary: "change a live layer of the profiles",
  positionals: ["LAYER", "[FIELD=VALUE...]"],
  about:
    "Fields are put into the layer as it is; --file replaces it. Refused as a whole, with every reason, when it is not valid. Workers\n" +
    "apply it at once: idle sandboxes are rebuilt before their next job, busy ones when their jobs have ended.",
  examples: [
    { line: "berth profile set tenant.acme limits.memoryBytes=256m network=none", note: "" },
    { line: "berth profile set profile.net network=bridge exec.timeoutMs=5m", note: "a profile to grant" },
    { line: "berth profile set fleet mode=off", note: "until `berth profile set fleet --unset mode`" },
    { line: "berth profile set tenant.acme --file acme.yaml", note: "" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [layer = "", ...assignments] = positionals;
  const { profiles } = await context.door();
  const known = await profiles.get(layer);
  const given = values["if-version"];
  const settings = await settingsGiven(values, assignments, known?.settings ?? {}, context);
  // The new fields extend the layer that was just read, so it must not have changed since.
  const read = values.file === undefined ? (known?.version ?? 0) : undefined;
  const ifVersion = given === undefined ? read : wholeNumber("--if-version", given, 0);
  const now = await profiles.set(layer, settings, ifVersion);
  await context.terminal.answer(now, () => layerText(now));
  return exitCodes.ok;
}

/** The layer to store: read from a file, or the stored one with fields set and removed. */
export async function settingsGiven(
  { file, unset }: { readonly file: string | undefined; readonly unset: readonly string[] },
  assignments: readonly string[],
  known: object,
  { directory }: Context,
): Promise<Settings> {
  if (file === undefined && assignments.length + unset.length === 0)
    throw new UsageError("FIELD=VALUE, --unset FIELD or --file FILE is needed");
  const before = file === undefined ? (known as Settings) : await settingsIn(directory, file);
  return withAssignments(withoutFields(before, unset), assignments);
}
