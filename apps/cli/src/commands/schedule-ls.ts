import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { scheduleTable } from "../schedule-table.ts";

const options = {} as const;

export const scheduleLs = command({
  name: "schedule ls",
  summary: "schedules, and when each runs next",
  positionals: [],
  examples: [
    { line: "berth schedule ls", note: "" },
    { line: "berth schedule ls --json | jq '.schedules[].nextDueMs'", note: "for a program" },
  ],
  options,
  run,
});

async function run(_: Arguments<typeof options>, context: Context): Promise<number> {
  const schedules = await (await context.door()).schedules.list();
  await context.terminal.answer({ schedules }, () => scheduleTable(schedules));
  return exitCodes.ok;
}
