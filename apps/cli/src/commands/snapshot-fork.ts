import { randomBytes } from "node:crypto";
import { isSuccess } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { endOf, failure, submitJob } from "../run-job.ts";
import { wholeNumber } from "../values.ts";

const options = {
  count: { type: "string", short: "n", value: "N", about: "how many (1)" },
  prefix: { type: "string", value: "NAME", about: "of the sessions' names, before -1, -2, … (a random one)" },
} as const;

export const snapshotFork = command({
  name: "snapshot fork",
  summary: "create sandboxes that start with a snapshot's files",
  positionals: ["TENANT", "NAME"],
  about:
    "Each is a session with a sandbox of its own, and stays until it is destroyed. Prints the sessions' names. `berth exec --fork-of` and\n" +
    "`forkOf` in a batch's line need no such call before them.",
  examples: [
    { line: "berth snapshot fork acme ready -n 3 --prefix try", note: "try-1, try-2 and try-3" },
    {
      line: "berth snapshot fork acme ready --prefix a && berth exec acme --scope session -s a-1 -- make test",
      note: "a command in one of them",
    },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [tenant = "", name = ""] = positionals;
  const count = values.count === undefined ? 1 : wholeNumber("--count", values.count);
  const { prefix = `${name.slice(0, 40)}-${randomBytes(4).toString("hex")}` } = values;
  const sessions = Array.from({ length: count }, (_, index) => `${prefix}-${index + 1}`);
  const request = { kind: "list", maxItems: 1 } as const;
  const jobs = [];
  for (const session of sessions)
    jobs.push(await submitJob(context, { tenant, scope: "session", session, forkOf: name, request }));
  for (const job of jobs) {
    const { outcome } = await endOf(context, job, job.result());
    if (!isSuccess(outcome)) throw failure(outcome);
  }
  await context.terminal.answer({ tenant, sessions }, () => sessions.join("\n"));
  return exitCodes.ok;
}
