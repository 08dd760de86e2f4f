import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { notFound } from "../not-found.ts";

const options = {} as const;

export const scheduleResume = command({
  name: "schedule resume",
  summary: "resume a paused schedule",
  positionals: ["ID"],
  about: "Its --catch-up decides what happens to the runs it missed.",
  examples: [{ line: "berth schedule resume nightly", note: "" }],
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
