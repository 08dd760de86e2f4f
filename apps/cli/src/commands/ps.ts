import { givenNamesText } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { sandboxTable } from "../fleet-tables.ts";
import { spanText } from "../terminal/quantities.ts";
import { table } from "../terminal/table.ts";
import { tenantName, wholeNumber } from "../values.ts";

const options = {
  sandboxes: { type: "boolean", short: "S", about: "sandboxes instead of jobs" },
  limit: { type: "string", value: "N", about: "at most this many (1000)" },
} as const;

export const ps = command({
  name: "ps",
  summary: "jobs that have not ended, or sandboxes",
  positionals: ["[TENANT]"],
  about:
    "Lists jobs that wait, run, or will be retried (scheduled). A job with --delay is listed once it is due;\n" +
    "`berth why JOB` shows when that is. It searches the oldest 10,000 unfinished jobs of the TENANT, or of the fleet.",
  examples: [
    { line: "berth ps", note: "of all tenants, the oldest first" },
    { line: "berth ps acme", note: "of one" },
    { line: "berth ps --sandboxes", note: "with their workers, the most recently used first" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const tenant = positionals[0] === undefined ? undefined : tenantName(positionals[0]);
  const limit = values.limit === undefined ? 1_000 : wholeNumber("--limit", values.limit);
  const query = { tenant, limit };
  const door = await context.door();
  if (values.sandboxes) {
    const sandboxes = await door.sandboxes(query);
    await context.terminal.answer({ sandboxes }, () => sandboxTable(sandboxes, context.terminal));
    return exitCodes.ok;
  }
  const jobs = await door.unfinished(query);
  const named = jobs.some(({ names }) => names !== undefined);
  await context.terminal.answer({ jobs }, () =>
    table(
      ["JOB", "TENANT", "SESSION", "KIND", "STATE", "AGE", ...(named ? ["GIVEN NAMES"] : [])],
      jobs.map(({ id, tenant, session, kind, state, acceptedAtMs, names }) => [
        id,
        tenant,
        session,
        kind,
        state,
        spanText(Date.now() - acceptedAtMs),
        ...(named ? [givenNamesText(names) || "-"] : []),
      ]),
    ),
  );
  return exitCodes.ok;
}
