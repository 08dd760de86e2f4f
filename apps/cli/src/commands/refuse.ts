import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { readSeen } from "../seen-approval.ts";

const options = {
  reason: { type: "string", value: "TEXT", about: "why; the tenant reads it" },
} as const;

export const refuse = command({
  name: "refuse",
  summary: "refuse jobs that wait for an approval",
  positionals: ["JOB..."],
  about: "They end as refused, and nothing of them runs. `JOB:DIGEST` refuses only what was shown.",
  examples: [{ line: "berth refuse JOB --reason 'not on a Friday'", note: "" }],
  options,
  run,
});

async function run({ positionals, values }: Arguments<typeof options>, context: Context): Promise<number> {
  const { approvals } = await context.door();
  for (const text of positionals) await approvals.refuse(readSeen(text), values.reason ?? "");
  await context.terminal.answer({ refused: positionals }, () => positionals.join("\n"));
  return exitCodes.ok;
}
