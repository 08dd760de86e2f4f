import { type Arguments, command, jobOptions } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { placeOf, runJob } from "../run-job.ts";
import { printable } from "../terminal/printable.ts";
import { wholeNumber } from "../values.ts";

const options = {
  ...jobOptions,
  base: { type: "string", value: "DIR", about: "beneath this directory" },
  dot: { type: "boolean", about: "names that begin with a dot too" },
  limit: { type: "string", value: "N", about: "at most this many (1000)" },
} as const;

export const glob = command({
  name: "glob",
  summary: "find files of a tenant's workspace by name",
  positionals: ["TENANT", "PATTERN..."],
  examples: [
    { line: "berth glob acme '**/*.py'", note: "quoted, so that your own shell leaves it alone" },
    { line: "berth glob acme 'out/*.csv' 'out/*.png'", note: "several at once" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant = "", ...patterns] = positionals;
  const { base, dot, limit } = values;
  const { value } = await runJob(context, {
    tenant,
    ...placeOf(values),
    request: {
      kind: "glob",
      patterns,
      dot,
      ...(base === undefined ? {} : { base }),
      ...(limit === undefined ? {} : { maxItems: wholeNumber("--limit", limit) }),
    },
  });
  const { entries = [], truncated = false } = value;
  await context.terminal.answer({ entries, truncated }, () =>
    entries.map(({ path }) => printable(path)).join("\n"),
  );
  if (truncated) context.terminal.note("berth: there are more; --limit raises how many are shown");
  return exitCodes.ok;
}
