import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";

const options = {} as const;

export const approve = command({
  name: "approve",
  summary: "approve jobs that wait for an approval",
  positionals: ["JOB..."],
  about: "A job that was approved runs also when it is retried.",
  examples: [{ line: "berth approve JOB", says: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { approvals } = await context.door();
  for (const jobId of positionals) await approvals.approve(jobId);
  await context.terminal.answer({ approved: positionals }, () => positionals.join("\n"));
  return exitCodes.ok;
}
