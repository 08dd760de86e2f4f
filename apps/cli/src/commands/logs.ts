import { exitCodeOf } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import type { IdentifiedEvent } from "../door.ts";
import { exitCodes } from "../exit-codes.ts";
import { knownJob } from "../known-job.ts";
import { outcomeText } from "../run-job.ts";
import { soFar } from "../so-far.ts";
import { printable } from "../terminal/printable.ts";

const options = {
  follow: { type: "boolean", short: "f", about: "stay until its end" },
  after: { type: "string", value: "ID", about: "only what came after an event, by its id in --json" },
} as const;

export const logs = command({
  name: "logs",
  summary: "what a job has written, from any terminal",
  positionals: ["JOB"],
  about:
    "stdout and stderr apart, as the job wrote them. With -f the exit code is the job's own. With --json one event in each line,\n" +
    "with ids that --after takes; output is text, or base64 where it is not UTF-8.",
  examples: [
    { line: "berth logs JOB", says: "so far" },
    { line: "berth logs -f JOB", says: "and on, until it ends" },
    { line: "berth logs -f --json JOB | jq .type", says: "started, stdout, …, finished" },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { terminal } = context;
  const job = await knownJob(context, positionals[0] ?? "");
  const events = job.events(values.after);
  for await (const event of values.follow ? events : soFar(events)) {
    if (terminal.json) await terminal.line(JSON.stringify(inJson(event)));
    else if (event.type === "stdout" || event.type === "stderr")
      await terminal.write(event.bytes, event.type);
    if (event.type !== "finished" || !values.follow) continue;
    const { outcome } = event.result;
    const ended = outcomeText(outcome);
    if (!terminal.json && ended !== "") terminal.note(`berth: ${printable(ended)}`);
    return exitCodeOf(outcome) ?? exitCodes.failed;
  }
  return exitCodes.ok;
}

function inJson(event: IdentifiedEvent): Record<string, unknown> {
  if (event.type !== "stdout" && event.type !== "stderr") return { ...event };
  const { id, type, bytes } = event;
  const text = bytes.toString();
  return Buffer.from(text).equals(bytes)
    ? { id, type, text, encoding: "utf8" }
    : { id, type, text: bytes.toString("base64"), encoding: "base64" };
}
