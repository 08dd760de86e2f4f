import { exitCodeOf, type JobResult } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import type { IdentifiedEvent, ShownState } from "../door.ts";
import { exitCodes } from "../exit-codes.ts";
import { knownJob } from "../known-job.ts";
import { retryText } from "../retry-text.ts";
import { outcomeText } from "../run-job.ts";
import { type Pauses, soFar } from "../so-far.ts";
import { printable } from "../terminal/printable.ts";
import type { Terminal } from "../terminal/terminal.ts";

const options = {
  follow: { type: "boolean", short: "f", about: "stay until its end" },
  after: { type: "string", value: "ID", about: "only what came after an event, by its id in --json" },
} as const;

/** A slow connection takes at most this long for an event that exists. */
const slowMs = 10_000;

export const logs = command({
  name: "logs",
  summary: "show a job's output, from any terminal",
  positionals: ["JOB"],
  about:
    "stdout and stderr separately, as the job wrote them. With -f the exit code is the job's own. With --json one event in each line,\n" +
    "with ids that --after takes; output is text, or base64 where it is not UTF-8.",
  examples: [
    { line: "berth logs JOB", note: "so far" },
    { line: "berth logs -f JOB", note: "and on, until it ends" },
    {
      line: "berth logs -f --json JOB | jq .type",
      note: "started, stdout, …, finished; retrying between two runs",
    },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { terminal } = context;
  if (values.after !== undefined && !/^\d{1,20}-\d{1,20}$/.test(values.after))
    throw new UsageError(`--after: ${values.after} is not an event's id, such as 1794816088611-0`, [
      "berth logs --json JOB shows them",
    ]);
  const job = await knownJob(context, positionals[0] ?? "");
  const events = job.events(values.after);
  const state = await job.status();
  // A reader that resumes after the last event would wait forever.
  const over = values.after !== undefined && state === "finished";
  for await (const event of values.follow && !over ? events : soFar(events, pausesFor(state, over))) {
    if (terminal.json) await terminal.line(JSON.stringify(inJson(event)));
    else if (event.type === "stdout" || event.type === "stderr")
      await terminal.write(event.bytes, event.type);
    else if (event.type === "retrying" && values.follow)
      terminal.note(`berth: ${printable(retryText(event))}`);
    if (event.type === "finished" && values.follow) return ending(event.result, terminal);
  }
  return values.follow && over ? ending(await job.result(), terminal) : exitCodes.ok;
}

/** Events that must exist are waited for longer: over a slow connection their output would be missing, with exit code 0. */
function pausesFor(state: ShownState, isOver: boolean): Pauses {
  if (isOver || (state !== "running" && state !== "finished")) return {};
  return state === "running" ? { firstMs: slowMs } : { firstMs: slowMs, nextMs: slowMs };
}

function ending({ outcome }: JobResult, terminal: Terminal): number {
  const ended = outcomeText(outcome);
  if (!terminal.json && ended !== "") terminal.note(`berth: ${printable(ended)}`);
  return exitCodeOf(outcome) ?? exitCodes.failed;
}

function inJson(event: IdentifiedEvent): Record<string, unknown> {
  if (event.type !== "stdout" && event.type !== "stderr") return { ...event };
  const { id, type, bytes } = event;
  const text = bytes.toString();
  return Buffer.from(text).equals(bytes)
    ? { id, type, text, encoding: "utf8" }
    : { id, type, text: bytes.toString("base64"), encoding: "base64" };
}
