import { setTimeout as sleep } from "node:timers/promises";
import { type Arguments, command } from "../command.ts";
import { Complaint } from "../complaint.ts";
import type { Context } from "../context.ts";
import type { Door } from "../door.ts";
import { exitCodes } from "../exit-codes.ts";

const options = {
  wait: { type: "boolean", about: "wait until it has exited" },
} as const;

const lookMs = 500;

export const drain = command({
  name: "drain",
  summary: "let a worker finish its running jobs, take no new ones, and exit",
  positionals: ["WORKER"],
  about: "Its sandboxes move to other workers, or wait for one. Berth does not start the worker again.",
  examples: [
    { line: "berth drain worker-2", note: "" },
    {
      line: "berth drain worker-2 --wait && systemctl restart berth-worker",
      note: "an upgrade, one worker at a time",
    },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [worker = ""] = positionals;
  const door = await context.door();
  if (!(await isThere(door, worker)))
    throw new Complaint(`no worker ${worker} is alive`, {
      code: "not-found",
      advice: ["`berth fleet --once` lists them"],
    });
  await door.drain(worker);
  const interrupted = context.interrupts.signal();
  while (values.wait && !interrupted.aborted && (await isThere(door, worker))) await sleep(lookMs);
  if (interrupted.aborted) return context.interrupts.exitCode;
  await context.terminal.answer({ worker, left: values.wait }, () =>
    values.wait ? `${worker} has left` : `${worker} was asked to drain`,
  );
  return exitCodes.ok;
}

async function isThere(door: Door, worker: string): Promise<boolean> {
  return (await door.workers()).some(({ id }) => id === worker);
}
