import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { printable } from "../terminal/printable.ts";

const options = {} as const;

export const cancel = command({
  name: "cancel",
  summary: "end jobs, waiting or running",
  positionals: ["JOB..."],
  about: "A job that has ended stays as it ended. The exit code is 1 when one of them is not known.",
  examples: [
    { line: "berth cancel JOB", note: "its outcome becomes cancelled" },
    {
      line: "berth ps acme --json | jq -r '.jobs[].id' | xargs berth cancel",
      note: "everything of a tenant",
    },
  ],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const door = await context.door();
  const cancelled: Cancelled[] = [];
  for (const id of positionals) {
    const job = await door.job(id);
    const ended = (await job?.status()) === "finished";
    if (!ended) await job?.cancel();
    cancelled.push({ id, known: job !== undefined, ended });
  }
  await context.terminal.answer({ jobs: cancelled }, () => cancelled.map(cancelledText).join("\n"));
  return cancelled.every(({ known }) => known) ? exitCodes.ok : exitCodes.failed;
}

interface Cancelled {
  readonly id: string;
  readonly known: boolean;
  /** The job ended before the cancellation reached it. */
  readonly ended: boolean;
}

function cancelledText({ id, known, ended }: Cancelled): string {
  if (!known) return `${printable(id)} is not known`;
  return ended ? `${id} had ended already` : `${id} was asked to end`;
}
