import { isSuccess } from "@berth/protocol";
import { batchJobs } from "../batch/batch-jobs.ts";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { noBatch } from "../not-found.ts";
import { counted } from "../terminal/quantities.ts";

const options = {} as const;

export const batchStatus = command({
  name: "batch status",
  summary: "how far a batch is",
  positionals: ["ID"],
  about: "From any terminal. Jobs are counted from their submission to a day after their end.",
  examples: [
    { line: "berth batch status nightly-7", says: "" },
    { line: "berth batch status nightly-7 --json | jq .finished", says: "for a program" },
  ],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [id = ""] = positionals;
  const count = { submitted: 0, waiting: 0, running: 0, finished: 0, failed: 0 };
  for await (const { state, job } of batchJobs(await context.door(), id)) {
    count.submitted++;
    if (state === "scheduled" || state === "waiting") count.waiting++;
    else if (state === "running") count.running++;
    else {
      count.finished++;
      if (!isSuccess((await job.result()).outcome)) count.failed++;
    }
  }
  const { submitted, waiting, running, finished, failed } = count;
  if (submitted === 0) throw noBatch(id);
  await context.terminal.answer(
    { id, ...count },
    () =>
      `${id}: ${counted(submitted, "job")} submitted; ${finished} ended, ${failed} of them badly; ${running} run, ${waiting} wait`,
  );
  return exitCodes.ok;
}
