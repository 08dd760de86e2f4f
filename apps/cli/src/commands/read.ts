import { type Arguments, command, jobOptions } from "../command.ts";
import type { Context } from "../context.ts";
import { readInParts } from "../copy/read-parts.ts";
import { exitCodes } from "../exit-codes.ts";
import { placeOf, runJob } from "../run-job.ts";
import { wholeNumber } from "../values.ts";

const options = {
  ...jobOptions,
  line: { type: "string", short: "n", value: "N", about: "from this line on, counted from 1" },
  lines: { type: "string", value: "N", about: "this many lines" },
} as const;

export const read = command({
  name: "read",
  summary: "print a file of a tenant's workspace",
  positionals: ["TENANT", "PATH"],
  about: "Writes the file's exact bytes to stdout; --line and --lines select lines of a text file.",
  examples: [
    { line: "berth read acme answer.txt", note: "" },
    { line: "berth read acme plot.png > plot.png", note: "any bytes, any size" },
    { line: "berth read acme log.txt --line 100 --lines 20", note: "lines 100 to 119" },
    { line: "berth read acme main.py --json", note: "with its size and sha256" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant = "", path = ""] = positionals;
  const send = (request: Parameters<typeof runJob>[1]["request"]) =>
    runJob(context, { tenant, ...placeOf(values), request });
  const { line, lines } = values;
  if (line === undefined && lines === undefined && !context.terminal.json) {
    for await (const bytes of readInParts(send, path)) await context.terminal.write(bytes);
    return exitCodes.ok;
  }
  const { value } = await send({
    kind: "read",
    path,
    ...(line === undefined ? {} : { line: wholeNumber("--line", line) }),
    ...(lines === undefined ? {} : { lines: wholeNumber("--lines", lines) }),
  });
  if (context.terminal.json) await context.terminal.answer({ path, ...value }, () => "");
  else await context.terminal.write(value.content ?? "");
  return exitCodes.ok;
}
