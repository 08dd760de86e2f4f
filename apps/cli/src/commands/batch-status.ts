import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { noBatch } from "../not-found.ts";
import { counted } from "../terminal/quantities.ts";

const options = {} as const;

export const batchStatus = command({
  name: "batch status",
  summary: "show the progress of a batch",
  positionals: ["ID"],
  about: "Works from any terminal. Jobs are counted from their submission to a day after their end.",
  examples: [
    { line: "berth batch status nightly-7", note: "" },
    { line: "berth batch status nightly-7 --json | jq .finished", note: "for a program" },
  ],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [id = ""] = positionals;
  const status = await (await context.door()).batches.status(id);
  if (!status) throw noBatch(id);
  const { submitted, waiting, running, finished, failed } = status;
  const now =
    running === undefined ? `${submitted - finished} run or wait` : `${running} run, ${waiting} wait`;
  await context.terminal.answer(
    { id, ...status },
    () =>
      `${id}: ${counted(submitted, "job")} submitted; ${finished} ended, ${failed} of them failed; ${now}`,
  );
  return exitCodes.ok;
}
