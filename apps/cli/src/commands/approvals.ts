import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { spanText } from "../terminal/quantities.ts";
import { table } from "../terminal/table.ts";

const options = {} as const;

export const approvals = command({
  name: "approvals",
  summary: "jobs that wait for an approval",
  positionals: ["[TENANT]"],
  about:
    "A rule of a profile says which jobs need one: docs/policy.md. A job is refused when the rule's time limit passes. `berth approve` and " +
    "`berth refuse` decide.",
  examples: [
    { line: "berth approvals", says: "" },
    { line: "berth approvals acme --json", says: "with everything that they would run" },
  ],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant] = positionals;
  const waiting = await (await context.door()).approvals.list(tenant);
  await context.terminal.answer({ approvals: waiting }, () =>
    table(
      ["JOB", "TENANT", "SESSION", "KIND", "EXPIRES IN", "WOULD RUN"],
      waiting.map(({ jobId, tenant, session, kind, expiresAtMs, preview }) => [
        jobId,
        tenant,
        session,
        kind,
        spanText(Math.max(0, expiresAtMs - Date.now())),
        preview.split("\n", 1)[0]?.slice(0, 100) ?? "",
      ]),
    ),
  );
  return exitCodes.ok;
}
