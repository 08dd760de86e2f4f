import { type Arguments, command, jobOptions } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { placeOf, runJob } from "../run-job.ts";
import { printable } from "../terminal/printable.ts";
import { wholeNumber } from "../values.ts";

const options = {
  ...jobOptions,
  regex: { type: "boolean", short: "E", about: "a POSIX extended regular expression; otherwise text" },
  "ignore-case": { type: "boolean", short: "i", about: "match upper and lower case alike" },
  include: { type: "string", value: "GLOB", multiple: true, about: "only files with such names" },
  limit: { type: "string", value: "N", about: "at most this many (200)" },
} as const;

export const grep = command({
  name: "grep",
  summary: "search in the files of a tenant's workspace",
  positionals: ["TENANT", "PATTERN", "[PATH]"],
  about: "The exit code is 0 when something was found and 1 when nothing was.",
  examples: [
    { line: "berth grep acme TODO", note: "in the whole workspace" },
    { line: "berth grep acme -E 'def [a-z]+' src --include '*.py'", note: "a pattern, in some files" },
    { line: "berth grep acme TODO --json | jq .matches", note: "for a program" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant = "", pattern = "", path = ""] = positionals;
  const { regex, "ignore-case": ignoreCase, include, limit } = values;
  const { value } = await runJob(context, {
    tenant,
    ...placeOf(values),
    request: {
      kind: "grep",
      pattern,
      path,
      regex,
      ignoreCase,
      include: [...include],
      ...(limit === undefined ? {} : { maxItems: wholeNumber("--limit", limit) }),
    },
  });
  const { matches = [], truncated = false } = value;
  await context.terminal.answer({ matches, truncated }, () =>
    matches
      .map(
        (match) => `${printable(match.path)}:${match.line}:${printable(match.text)}${match.cut ? " …" : ""}`,
      )
      .join("\n"),
  );
  if (truncated) context.terminal.note("berth: there are more; --limit raises how many are shown");
  return matches.length > 0 ? exitCodes.ok : exitCodes.failed;
}
