import { byteSize, readSize } from "@berth/protocol";
import { type Arguments, command, jobOptions } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { placeOf, runJob } from "../run-job.ts";

const options = {
  ...jobOptions,
  sha256: { type: "string", value: "HEX", about: "keep the file only if it has this hash" },
  "max-bytes": {
    type: "string",
    value: "SIZE",
    about: "refuse what is larger, such as 500m; 100m when absent",
  },
} as const;

export const fetchUrl = command({
  name: "fetch",
  summary: "download a URL into a tenant's workspace",
  positionals: ["TENANT", "URL", "PATH"],
  about:
    "The worker downloads it, by the egress rules of the profile; the sandbox needs no network. Each redirect is checked. The file appears once it is complete.",
  examples: [
    {
      line: "berth fetch acme https://example.com/data.csv data/in.csv",
      note: "size, type and sha256 are printed",
    },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant = "", url = "", path = ""] = positionals;
  const { sha256, "max-bytes": most } = values;
  const maxBytes = most === undefined ? undefined : readSize(most);
  if (most !== undefined && maxBytes === undefined)
    throw new UsageError(`--max-bytes: ${most} is not a size, such as 500m`);
  const request = { kind: "fetch", url, path, sha256, maxBytes } as const;
  const { value } = await runJob(context, { tenant, ...placeOf(values), request });
  const { size = 0, type = "no type" } = value;
  await context.terminal.answer(
    { ...value, path },
    () => `${path}: ${byteSize(size)}, ${type}, sha256 ${value.sha256}\n`,
  );
  return exitCodes.ok;
}
