import { batchJobs } from "../batch/batch-jobs.ts";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { noBatch } from "../not-found.ts";

const options = {} as const;

export const batchCancel = command({
  name: "batch cancel",
  summary: "end what has not ended of a batch",
  positionals: ["ID"],
  about: "End `berth batch run` first, if it still submits.",
  examples: [{ line: "berth batch cancel nightly-7", says: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [id = ""] = positionals;
  const count = { known: 0, cancelled: 0 };
  for await (const { state, job } of batchJobs(await context.door(), id)) {
    count.known++;
    if (state === "finished") continue;
    await job.cancel();
    count.cancelled++;
  }
  if (count.known === 0) throw noBatch(id);
  await context.terminal.answer(
    { id, ...count },
    () => `${count.cancelled} of ${count.known} jobs were told to end`,
  );
  return exitCodes.ok;
}
