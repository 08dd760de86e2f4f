import { type Arguments, command, jobOptions } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { placeOf, runJob } from "../run-job.ts";

const options = { ...jobOptions } as const;

export const snapshotRestore = command({
  name: "snapshot restore",
  summary: "replace a sandbox's files with those of a snapshot",
  positionals: ["TENANT", "NAME"],
  about: "All other files of its workspace are removed, and background processes are killed.",
  examples: [{ line: "berth snapshot restore acme ready", note: "" }],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant = "", name = ""] = positionals;
  const order = { tenant, ...placeOf(values), request: { kind: "restore", name } as const };
  const { value } = await runJob(context, order);
  await context.terminal.answer(value, () => "");
  return exitCodes.ok;
}
