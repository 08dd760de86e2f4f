import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { hostImages } from "../host-images.ts";
import { durationMs } from "../values.ts";

const options = {
  "unused-for": { type: "string", value: "TIME", about: "only those not used for 12h, 30d, … (30d)" },
} as const;
const dayMs = 86_400_000;

export const imagePrune = command({
  name: "image prune",
  summary: "remove images that Berth has pulled to this machine and that nothing uses",
  positionals: [],
  about:
    "Images that other programs pulled or built stay, and so do those that a container uses. Workers do the same (BERTH_IMAGE_DAYS). What a\n" +
    "running worker's profiles name counts as used.",
  examples: [{ line: "berth image prune --unused-for 7d", note: "" }],
  options,
  run,
});

async function run({ values }: Arguments<typeof options>, context: Context): Promise<number> {
  const given = values["unused-for"];
  const unusedForMs = given === undefined ? 30 * dayMs : durationMs("--unused-for", given);
  const removed = await (await hostImages(context)).prune(unusedForMs);
  await context.terminal.answer({ removed }, () => removed.map((image) => `${image} is removed`).join("\n"));
  return exitCodes.ok;
}
