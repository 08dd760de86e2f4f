import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";

const options = {
  reason: { type: "string", value: "TEXT", about: "why; the tenant reads it" },
} as const;

export const refuse = command({
  name: "refuse",
  summary: "refuse jobs that wait for an approval",
  positionals: ["JOB..."],
  about: "They end as refused, and nothing of them runs.",
  examples: [{ line: "berth refuse JOB --reason 'not on a Friday'", says: "" }],
  options,
  run,
});

async function run({ positionals, values }: Arguments<typeof options>, context: Context): Promise<number> {
  const { approvals } = await context.door();
  for (const jobId of positionals) await approvals.refuse(jobId, values.reason ?? "");
  await context.terminal.answer({ refused: positionals }, () => positionals.join("\n"));
  return exitCodes.ok;
}
