import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { outcomeText } from "../run-job.ts";
import { spanText } from "../terminal/quantities.ts";
import { table } from "../terminal/table.ts";
import { wholeNumber } from "../values.ts";

const options = {
  limit: { type: "string", value: "N", about: "at most this many (100)" },
  after: { type: "string", value: "CURSOR", about: "those after this cursor of --json" },
} as const;

export const deadLs = command({
  name: "dead ls",
  summary: "list dead letters: failed jobs that an operator should look at",
  positionals: [],
  about:
    "Lost, unreadable, failed by a fault of the fleet's own, or out of retries; the newest first, kept for a week.",
  examples: [
    { line: "berth dead ls", note: "" },
    {
      line: "berth dead ls --json | jq -r '.letters[].jobId' | xargs berth dead redrive",
      note: "run them all again",
    },
  ],
  options,
  run,
});

async function run({ values }: Arguments<typeof options>, context: Context): Promise<number> {
  const limit = values.limit === undefined ? 100 : wholeNumber("--limit", values.limit);
  const letters = await (await context.door()).deadLetters.list({ limit, after: values.after });
  await context.terminal.answer({ letters }, () =>
    table(
      ["JOB", "SANDBOX", "REASON", "AGE", "WORKER", "HOW IT ENDED"],
      letters.map(({ jobId, sandboxKey, reason, atMs, worker, outcome }) => [
        jobId,
        sandboxKey,
        reason,
        spanText(Date.now() - atMs),
        worker,
        outcome.kind === "exited" ? `exit ${outcome.code}` : outcomeText(outcome),
      ]),
    ),
  );
  return exitCodes.ok;
}
