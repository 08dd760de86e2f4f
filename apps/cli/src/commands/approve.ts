import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { seenApproval } from "../seen-approval.ts";

const options = {} as const;

export const approve = command({
  name: "approve",
  summary: "approve jobs that wait for an approval",
  positionals: ["JOB:DIGEST..."],
  about:
    "The digest is of what `berth approvals` and `berth approvals show` have shown. A job that would run something else by now is not " +
    "approved. A job that was approved runs also when it is retried.",
  examples: [{ line: "berth approve JOB:DIGEST", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { approvals } = await context.door();
  const seen = positionals.map(seenApproval);
  for (const one of seen) await approvals.approve(one);
  await context.terminal.answer({ approved: seen.map(({ jobId }) => jobId) }, () => positionals.join("\n"));
  return exitCodes.ok;
}
