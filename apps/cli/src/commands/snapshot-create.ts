import { byteSize } from "@berth/protocol";
import { type Arguments, command, jobOptions } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { placeOf, runJob } from "../run-job.ts";
import { counted } from "../terminal/quantities.ts";
import { durationMs } from "../values.ts";

const options = {
  ...jobOptions,
  ttl: { type: "string", value: "TIME", about: "remove it after 30m, 12h, 7d, …; without, it stays" },
  replace: { type: "boolean", about: "replace a snapshot of that name" },
} as const;

export const snapshotCreate = command({
  name: "snapshot create",
  summary: "save a sandbox's files under a name",
  positionals: ["TENANT", "NAME"],
  about:
    "Runs after the jobs that wait in its session, and alone in the sandbox. Background processes are killed. On btrfs and\n" +
    "where the file system shares blocks (reflink), no bytes are copied.",
  examples: [
    { line: "berth snapshot create acme ready --ttl 7d", note: "after everything is installed" },
    { line: "berth snapshot create acme ready --replace", note: "again, in the place of the first" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant = "", name = ""] = positionals;
  const { ttl, replace } = values;
  const ttlMs = ttl === undefined ? {} : { ttlMs: durationMs("--ttl", ttl) };
  const request = { kind: "snapshot", name, replace, ...ttlMs } as const;
  const { value } = await runJob(context, { tenant, ...placeOf(values), request });
  await context.terminal.answer(value, () => {
    const { size = 0, count = 0, method = "copy" } = value;
    return `${name}: ${byteSize(size)}, ${counted(count, "file")} and directories (${method})`;
  });
  return exitCodes.ok;
}
