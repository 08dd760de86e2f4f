import { shortPreview } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { shownApproval } from "../seen-approval.ts";
import { spanText } from "../terminal/quantities.ts";
import { table } from "../terminal/table.ts";

const options = {} as const;
/** Characters of a job's preview in its row. */
const shownLength = 100;

export const approvals = command({
  name: "approvals",
  summary: "jobs that wait for an approval",
  positionals: ["[TENANT]"],
  about:
    "A rule of a profile decides which jobs need one: docs/policy.md. A job is refused when the rule's time limit passes. `berth approvals " +
    "show` prints all that a job would run. `berth approve` and `berth refuse` take the first column.",
  examples: [
    { line: "berth approvals", note: "" },
    { line: "berth approvals acme --json", note: "with everything that they would run" },
  ],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant] = positionals;
  const waiting = await (await context.door()).approvals.list(tenant);
  await context.terminal.answer({ approvals: waiting }, () =>
    table(
      ["JOB:DIGEST", "TENANT", "SESSION", "KIND", "EXPIRES IN", "WOULD RUN"],
      waiting.map((one) => [
        shownApproval(one),
        one.tenant,
        one.session,
        one.kind,
        spanText(Math.max(0, one.expiresAtMs - Date.now())),
        shortPreview(one.preview.replaceAll("\n", " ⏎ "), shownLength),
      ]),
    ),
  );
  return exitCodes.ok;
}
