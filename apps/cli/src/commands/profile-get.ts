import { type Arguments, command } from "../command.ts";
import { Complaint } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { layerText } from "../profile-texts.ts";

const options = {} as const;

export const profileGet = command({
  name: "profile get",
  summary: "live layers of the profiles",
  positionals: ["[LAYER]"],
  about:
    "A layer is fleet, profile.NAME, tenant.ID or agent.TENANT.NAME; without one, all are shown. Settings from the workers' own\n" +
    "files and variables are not shown. docs/profiles.md has the fields.",
  examples: [
    { line: "berth profile get", note: "everything that is set" },
    {
      line: "berth profile get tenant.acme --json | jq .settings > acme.json",
      note: "to change it in a file",
    },
  ],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { profiles } = await context.door();
  const [layer] = positionals;
  if (layer === undefined) {
    const all = await profiles.list();
    const text = () => (all.length === 0 ? "no layer is live" : all.map(layerText).join("\n\n"));
    await context.terminal.answer({ layers: all }, text);
    return exitCodes.ok;
  }
  const found = await profiles.get(layer);
  if (!found) throw new Complaint(`there is no live layer ${layer}`, { code: "not-found" });
  await context.terminal.answer(found, () => layerText(found));
  return exitCodes.ok;
}
