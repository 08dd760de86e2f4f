import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { notFound } from "../not-found.ts";

const options = {} as const;

export const schedulePause = command({
  name: "schedule pause",
  summary: "pause a schedule until it is resumed",
  positionals: ["ID"],
  about: "Jobs that it has already submitted still run.",
  examples: [{ line: "berth schedule pause nightly", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [id = ""] = positionals;
  if (!(await (await context.door()).schedules.pause(id)))
    throw notFound(`schedule ${id}`, "berth schedule ls");
  await context.terminal.answer({ id, paused: true }, () => `${id} is paused`);
  return exitCodes.ok;
}
