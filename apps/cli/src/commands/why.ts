import { givenNamesText } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { printable } from "../terminal/printable.ts";

const options = {} as const;

export const why = command({
  name: "why",
  summary: "show why a job waits, or how it ended",
  positionals: ["JOB"],
  about:
    "What it waits for, or how it ended; the main reason first. The exit code is 1 when no such job is known.",
  examples: [
    { line: "berth why JOB", note: "waiting: no worker of the pool gpu is there" },
    { line: "berth why JOB --json | jq -r .state", note: "for a program" },
  ],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const why = await (await context.door()).why(positionals[0] ?? "");
  await context.terminal.answer(why, () =>
    [
      `${why.state}: ${why.reasons[0] ?? ""}`,
      ...why.reasons.slice(1).map((reason) => `  ${reason}`),
      ...(why.names === undefined ? [] : [`  given names: ${givenNamesText(why.names)}`]),
    ]
      .map(printable)
      .join("\n"),
  );
  return why.state === "unknown" ? exitCodes.failed : exitCodes.ok;
}
