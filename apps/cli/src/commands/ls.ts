import { type Arguments, command, jobOptions } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { longListing, shortName } from "../file-listing.ts";
import { placeOf, runJob } from "../run-job.ts";
import { wholeNumber } from "../values.ts";

const options = {
  ...jobOptions,
  long: { type: "boolean", short: "l", about: "type, permissions, size and time of each" },
  recursive: { type: "boolean", short: "R", about: "and what is in its directories" },
  limit: { type: "string", value: "N", about: "at most this many (10000)" },
} as const;

export const ls = command({
  name: "ls",
  summary: "list a directory of a tenant's workspace",
  positionals: ["TENANT", "[PATH]"],
  examples: [
    { line: "berth ls acme", note: "the workspace itself" },
    { line: "berth ls acme src -lR", note: "src and everything beneath it, with details" },
    { line: "berth ls acme --json | jq '.entries[].path'", note: "for a program" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant = "", path = ""] = positionals;
  const maxItems = values.limit === undefined ? 10_000 : wholeNumber("--limit", values.limit);
  const request = { kind: "list", path, recursive: values.recursive, maxItems } as const;
  const { value } = await runJob(context, { tenant, ...placeOf(values), request });
  const { entries = [], truncated = false } = value;
  await context.terminal.answer({ entries, truncated }, () =>
    values.long ? longListing(entries) : entries.map(shortName).join("\n"),
  );
  if (truncated) context.terminal.note(`berth: there are more than ${maxItems}`);
  return exitCodes.ok;
}
