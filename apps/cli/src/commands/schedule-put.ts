import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type Arguments, command, jobOptions } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import type { ScheduleInput } from "../door.ts";
import { execOrder } from "../exec-order.ts";
import { exitCodes } from "../exit-codes.ts";
import { placeOf } from "../run-job.ts";
import { scheduleLine } from "../schedule-table.ts";
import { assignments, durationMs, oneOf, wholeNumber } from "../values.ts";

const options = {
  ...jobOptions,
  tenant: { type: "string", value: "TENANT", about: "whose sandbox it runs in" },
  cron: { type: "string", value: "FIELDS", about: "five fields, or six with seconds first" },
  every: { type: "string", value: "TIME", about: "a fixed interval instead: 10m, 1h, …" },
  "time-zone": { type: "string", value: "ZONE", about: "of the cron fields, such as Europe/Berlin (UTC)" },
  "catch-up": { type: "string", value: "HOW", about: "missed runs: skip, once or all (skip)" },
  "max-runs": { type: "string", value: "N", about: "stop after this many runs" },
  paused: { type: "boolean", about: "create it paused" },
  timeout: { type: "string", short: "t", value: "TIME", about: "kill each run after this long" },
  env: {
    type: "string",
    short: "e",
    value: "NAME=VALUE",
    multiple: true,
    about: "environment of the command",
  },
  cwd: { type: "string", short: "C", value: "DIR", about: "directory beneath the workspace" },
  artifact: {
    type: "string",
    short: "a",
    value: "GLOB",
    multiple: true,
    about: "keep files with matching paths as artifacts",
  },
  file: {
    type: "string",
    short: "f",
    value: "FILE",
    about: "the whole schedule as JSON; allows every kind of job",
  },
} as const;

export const schedulePut = command({
  name: "schedule put",
  summary: "run a command on a schedule",
  positionals: ["ID"],
  words: "CMD…",
  about:
    "Makes the schedule, or replaces the one of that id. With unchanged times it continues where it was.",
  examples: [
    {
      line: "berth schedule put nightly --tenant acme --cron '0 3 * * *' -- python3 report.py",
      note: "at three, UTC",
    },
    { line: "berth schedule put poll --tenant acme --every 10m -- ./poll.sh", note: "every ten minutes" },
    {
      line: "berth schedule put nightly --file nightly.json",
      note: '{"cron": "…", "order": {"tenant": …, "request": …}}',
    },
  ],
  options,
  run,
});

async function run(args: Arguments<typeof options>, context: Context): Promise<number> {
  const [id = ""] = args.positionals;
  const input =
    args.values.file === undefined ? fromOptions(id, args) : await fromFile(id, args.values.file, context);
  const made = await (await context.door()).schedules.put(input);
  await context.terminal.answer(made, () => scheduleLine(made));
  return exitCodes.ok;
}

function fromOptions(id: string, { values, words = [] }: Arguments<typeof options>): ScheduleInput {
  const { tenant, cron, every, timeout } = values;
  if (tenant === undefined) throw new UsageError("--tenant is missing");
  if (words.length === 0) throw new UsageError("the command is missing; write it after --");
  if ((cron === undefined) === (every === undefined))
    throw new UsageError("either --cron or --every is needed");
  const request = execOrder(words, {
    env: assignments("--env", values.env),
    artifacts: values.artifact,
    cwd: values.cwd,
    timeoutMs: timeout === undefined ? undefined : durationMs("--timeout", timeout),
    stdin: undefined,
  });
  return {
    id,
    ...(cron === undefined ? {} : { cron }),
    ...(every === undefined ? {} : { everyMs: durationMs("--every", every) }),
    ...(values["time-zone"] === undefined ? {} : { timeZone: values["time-zone"] }),
    ...(values["catch-up"] === undefined
      ? {}
      : { catchUp: oneOf("--catch-up", values["catch-up"], ["skip", "once", "all"] as const) }),
    ...(values["max-runs"] === undefined ? {} : { maxRuns: wholeNumber("--max-runs", values["max-runs"]) }),
    ...(values.paused ? { paused: true } : {}),
    order: { tenant, ...placeOf(values), ...request },
  };
}

async function fromFile(id: string, file: string, { directory }: Context): Promise<ScheduleInput> {
  const text = await readFile(resolve(directory, file), "utf8");
  try {
    return { ...JSON.parse(text), id };
  } catch (error) {
    throw new UsageError(`${file}: it is not JSON (${(error as Error).message})`);
  }
}
