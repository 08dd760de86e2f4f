import { createReadStream } from "node:fs";
import { resolve } from "node:path";
import { type Arguments, command, jobOptions } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { writeInParts } from "../copy/write-parts.ts";
import { exitCodes } from "../exit-codes.ts";
import { placeOf, runJob } from "../run-job.ts";

const options = {
  ...jobOptions,
  append: { type: "boolean", about: "add to its end" },
  mode: { type: "string", value: "OCTAL", about: "permissions, such as 755" },
} as const;

export const write = command({
  name: "write",
  summary: "write a file in a tenant's workspace",
  positionals: ["TENANT", "PATH", "[FILE]"],
  about:
    "The content is FILE's, or what comes on stdin. Directories are made. A long file appears when it is complete.",
  examples: [
    { line: "echo 'print(6 * 7)' | berth write acme main.py", note: "from stdin" },
    { line: "berth write acme data/input.csv input.csv", note: "from a file here" },
    { line: "berth write acme run.sh --mode 755 run.sh", note: "executable" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant = "", path = "", file = "-"] = positionals;
  const { append, mode } = values;
  if (mode !== undefined && !/^[0-7]{3,4}$/.test(mode))
    throw new UsageError(`--mode: ${mode} is not three or four octal digits, such as 755`);
  const content = file === "-" ? stdin(context) : createReadStream(resolve(context.directory, file));
  const { value } = await writeInParts(
    { send: (request) => runJob(context, { tenant, ...placeOf(values), request }) },
    path,
    content,
    { append, mode: mode === undefined ? undefined : Number.parseInt(mode, 8) },
  );
  const { size = 0, sha256 = "", created = false } = value;
  await context.terminal.answer({ path, size, sha256, created }, () => "");
  return exitCodes.ok;
}

function stdin({ terminal }: Context): AsyncIterable<Buffer> {
  if (process.stdin.isTTY) terminal.note("berth: reading stdin; Ctrl-D ends it");
  return process.stdin as AsyncIterable<Buffer>;
}
