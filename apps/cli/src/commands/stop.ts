import { type Arguments, command, jobOptions } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { placeOf, runJob } from "../run-job.ts";

const options = { ...jobOptions } as const;

export const stop = command({
  name: "stop",
  summary: "stop the container of a sandbox; its files stay",
  positionals: ["TENANT"],
  about:
    "Runs after the jobs that wait in its session. Every process in the container is killed. The next job starts a fresh one.",
  examples: [
    { line: "berth stop acme", note: "" },
    { line: "berth stop acme --scope session --session build", note: "of a session that has its own" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant = ""] = positionals;
  await runJob(context, { tenant, ...placeOf(values), request: { kind: "stop" } });
  await context.terminal.answer({ tenant, stopped: true }, () => "");
  return exitCodes.ok;
}
