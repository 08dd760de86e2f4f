import { type Arguments, command, jobOptions } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { placeOf, runJob } from "../run-job.ts";

const options = {
  ...jobOptions,
  all: { type: "boolean", about: "every match; otherwise there must be exactly one" },
} as const;

export const edit = command({
  name: "edit",
  summary: "replace text in a file of a tenant's workspace",
  positionals: ["TENANT", "PATH", "FIND", "REPLACE"],
  about:
    "FIND is text, not a pattern. Without --all it must be there exactly once, so that nothing else is changed by mistake.",
  examples: [
    { line: "berth edit acme main.py 'print(42)' 'print(43)'", note: "the one place" },
    { line: "berth edit acme config.ini --all localhost db.internal", note: "every place" },
    { line: "berth edit acme notes.md -- '- old' '- new'", note: "text that begins with a dash" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant = "", path = "", find = "", replace = ""] = positionals;
  const request = { kind: "edit", path, find, replace, all: values.all } as const;
  const { value } = await runJob(context, { tenant, ...placeOf(values), request });
  const { count = 0, size = 0, sha256 = "" } = value;
  await context.terminal.answer({ path, count, size, sha256 }, () => `${count} replaced`);
  return exitCodes.ok;
}
