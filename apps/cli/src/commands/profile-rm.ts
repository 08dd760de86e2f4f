import { type Arguments, command } from "../command.ts";
import { Complaint } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";

const options = {} as const;

export const profileRm = command({
  name: "profile rm",
  summary: "remove a live layer of the profiles",
  positionals: ["LAYER"],
  about: "Its history stays for 90 days, and it can be rolled back to.",
  examples: [{ line: "berth profile rm tenant.acme", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [layer = ""] = positionals;
  const isRemoved = await (await context.door()).profiles.remove(layer);
  if (!isRemoved) throw new Complaint(`there is no live layer ${layer}`, { code: "not-found" });
  await context.terminal.answer({ layer, removed: true }, () => `${layer} is removed`);
  return exitCodes.ok;
}
