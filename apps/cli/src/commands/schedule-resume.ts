import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { notFound } from "../not-found.ts";

const options = {} as const;

export const scheduleResume = command({
  name: "schedule resume",
  summary: "let a paused schedule go on",
  positionals: ["ID"],
  about: "What was missed is made up for as its --catch-up says.",
  examples: [{ line: "berth schedule resume nightly", says: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [id = ""] = positionals;
  if (!(await (await context.door()).schedules.resume(id)))
    throw notFound(`schedule ${id}`, "berth schedule ls");
  await context.terminal.answer({ id, paused: false }, () => `${id} goes on`);
  return exitCodes.ok;
}
