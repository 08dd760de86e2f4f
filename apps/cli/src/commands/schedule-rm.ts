import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { notFound } from "../not-found.ts";

const options = {} as const;

export const scheduleRm = command({
  name: "schedule rm",
  summary: "remove a schedule",
  positionals: ["ID"],
  about: "Jobs that it has already submitted still run.",
  examples: [{ line: "berth schedule rm nightly", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [id = ""] = positionals;
  if (!(await (await context.door()).schedules.remove(id)))
    throw notFound(`schedule ${id}`, "berth schedule ls");
  await context.terminal.answer({ id, removed: true }, () => `${id} is removed`);
  return exitCodes.ok;
}
