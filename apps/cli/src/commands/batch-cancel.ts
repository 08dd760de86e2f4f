import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { noBatch } from "../not-found.ts";

const options = {} as const;

export const batchCancel = command({
  name: "batch cancel",
  summary: "cancel the jobs of a batch that have not ended",
  positionals: ["ID"],
  about:
    "Without a gateway (REDIS_URL), stop `berth batch run` first if it still submits. A gateway accepts no more jobs of the batch.",
  examples: [{ line: "berth batch cancel nightly-7", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [id = ""] = positionals;
  const count = await (await context.door()).batches.cancel(id);
  if (!count) throw noBatch(id);
  await context.terminal.answer(
    { id, ...count },
    () => `${count.cancelled} of ${count.known} jobs were asked to end`,
  );
  return exitCodes.ok;
}
