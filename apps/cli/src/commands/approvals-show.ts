import { type Arguments, command } from "../command.ts";
import { Complaint } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { readSeen, shownApproval } from "../seen-approval.ts";
import { printable } from "../terminal/printable.ts";

const options = {} as const;

export const approvalsShow = command({
  name: "approvals show",
  summary: "show all that a job would run that waits for an approval",
  positionals: ["JOB"],
  about: "Its secrets are masked. The first line is what `berth approve` takes.",
  examples: [{ line: "berth approvals show JOB", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { jobId } = readSeen(positionals[0] ?? "");
  const found = await (await context.door()).approvals.get(jobId);
  if (!found) throw new Complaint(`the job ${jobId} waits for no approval`);
  const { tenant, session, agent, kind, expiresAtMs, whole } = found;
  const whose = [
    `tenant ${tenant}`,
    `session ${session}`,
    ...(agent === undefined ? [] : [`agent ${agent}`]),
  ];
  await context.terminal.answer({ approval: found }, () =>
    [
      shownApproval(found),
      `${whose.join(", ")}, kind ${kind}, until ${new Date(expiresAtMs).toISOString()}`,
      "",
      ...whole.split("\n").map(printable),
    ].join("\n"),
  );
  return exitCodes.ok;
}
