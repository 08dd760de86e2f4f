import { randomBytes } from "node:crypto";
import { join, resolve } from "node:path";
import { chosenJobId, isSuccess, type OutcomeKind } from "@berth/protocol";
import { batchLines, checkBatchFile } from "../batch/batch-file.ts";
import { ResultFile, type ResultSink, resultsTo } from "../batch/result-file.ts";
import { resumeCommand } from "../batch/resume-command.ts";
import { type BatchEnd, isFailure } from "../batch/run-batch.ts";
import { type Arguments, command } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { saveArtifacts } from "../save-artifacts.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import { counted, spanText } from "../terminal/quantities.ts";
import { isBrokenPipe } from "../terminal/terminal.ts";
import { durationMs, wholeNumber } from "../values.ts";

const options = {
  id: { type: "string", value: "ID", about: "names the batch; the same name again goes on where it was" },
  out: { type: "string", short: "o", value: "FILE", about: "results, one JSON line each; - is stdout" },
  artifacts: { type: "string", value: "DIR", about: "files that jobs keep, in DIR/INDEX/…" },
  "in-flight": { type: "string", value: "N", about: "jobs submitted at once (1000; 64 through a gateway)" },
  patience: {
    type: "string",
    value: "TIME",
    about: "how long a gateway may be away before it gives up (10m)",
  },
} as const;

const defaultPatience = "10m";

export const batchRun = command({
  name: "batch run",
  summary: "run a file of jobs, one JSON line each",
  positionals: ["FILE"],
  about: `A line is a job: {"tenant": "acme", "session": "s1", "request": {"kind": "exec", "command": "python3 main.py"}}
Jobs of a tenant's session run in order, sessions and tenants side by side. All lines are checked before the first is submitted.
Ctrl-C stops submitting; what was submitted goes on. The same --id (and --out) later brings what is missing and runs nothing twice.
A connection to a gateway that breaks is made again. A run that stops early prints the command that goes on with it.
The exit code is 0 when all jobs succeeded, 1 when some did not, 69 when the fleet was away for too long, 130 when it was interrupted.`,
  examples: [
    { line: "berth batch run jobs.jsonl --out results.jsonl", says: "" },
    { line: "berth batch run jobs.jsonl --out results.jsonl --id nightly-7", says: "a name to go on with" },
    {
      line: "berth batch run jobs.jsonl --artifacts out",
      says: "with the files that jobs name in request.artifacts",
    },
    {
      line: "berth batch run jobs.jsonl --out - | jq -c 'select(.outcome.code != 0)'",
      says: "into another program",
    },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { terminal, interrupts, directory } = context;
  const file = resolve(directory, positionals[0] ?? "");
  const id = batchId(values.id);
  const total = await checkBatchFile(file);
  const patienceMs = durationMs("--patience", values.patience ?? defaultPatience);
  const door = await context.door();
  door.waitForOutages(patienceMs);
  const inFlight =
    values["in-flight"] === undefined ? door.inFlight : wholeNumber("--in-flight", values["in-flight"]);
  const sink = await sinkOf(values.out, id, context);
  const stop = interrupts.signal();
  const tally = new Tally(id, total, sink);
  if (!terminal.json)
    terminal.note(
      `berth: batch ${id}, ${counted(total, "job")}${sink.done.size > 0 ? `, ${sink.done.size} done before` : ""}`,
    );
  const resume = resumeCommand(positionals[0] ?? "", { ...values, id, json: terminal.json });
  const bar = new ProgressBar(terminal, id, { amount: (count) => `${Math.round(count)}` });
  try {
    // Loaded here: it brings the whole client with it.
    const { runBatch } = await import("../batch/run-batch.ts");
    bar.show(tally.finished, total);
    for await (const end of runBatch({
      door,
      id,
      lines: batchLines(file),
      done: sink.done,
      inFlight,
      stop,
    })) {
      if (values.artifacts !== undefined)
        await saveArtifacts(
          context,
          end.result.value.artifacts ?? [],
          join(values.artifacts, String(end.index)),
        );
      await sink.add({ index: end.index, id: end.id, ...end.result });
      tally.add(end);
      bar.show(tally.finished, total, tally.failed > 0 ? `, ${tally.failed} failed` : "");
    }
  } catch (error) {
    bar.end(false);
    if (!isBrokenPipe(error)) await tellEnd(context, tally, { stopped: true, resume, out: values.out });
    throw error;
  } finally {
    bar.end(false);
    await sink.close();
  }
  const stopped = stop.aborted && tally.finished < total;
  await tellEnd(context, tally, { stopped, resume, out: values.out });
  if (stopped) return interrupts.exitCode;
  return tally.failed === 0 ? exitCodes.ok : exitCodes.failed;
}

function batchId(given: string | undefined): string {
  const id = given ?? `batch-${randomBytes(5).toString("hex")}`;
  const parsed = chosenJobId.safeParse(`${id}-0`);
  if (!parsed.success || id.length > 100)
    throw new UsageError(`--id: ${id} is not 1 to 100 letters, digits, - and _`);
  return id;
}

async function sinkOf(out: string | undefined, id: string, context: Context): Promise<ResultSink> {
  if (out === undefined)
    return { done: new Set(), failedBefore: 0, add: async () => {}, close: async () => {} };
  if (out === "-") return resultsTo(context.terminal);
  return ResultFile.open(resolve(context.directory, out), id, isSuccess);
}

class Tally {
  readonly id: string;
  readonly total: number;
  readonly #beganMs = performance.now();
  readonly #before: number;
  readonly outcomes: Partial<Record<OutcomeKind, number>> = {};
  readonly failedIds: string[] = [];
  finished: number;
  failed: number;

  constructor(id: string, total: number, { done, failedBefore }: ResultSink) {
    this.id = id;
    this.total = total;
    this.#before = done.size;
    this.finished = done.size;
    this.failed = failedBefore;
  }

  add(end: BatchEnd): void {
    this.finished++;
    const { kind } = end.result.outcome;
    this.outcomes[kind] = (this.outcomes[kind] ?? 0) + 1;
    if (!isFailure(end)) return;
    this.failed++;
    if (this.failedIds.length < 5) this.failedIds.push(end.id);
  }

  get seconds(): number {
    return (performance.now() - this.#beganMs) / 1_000;
  }

  get perSecond(): number {
    return (this.finished - this.#before) / this.seconds;
  }
}

interface Ending {
  /** Before all jobs had ended. */
  readonly stopped: boolean;
  readonly resume: string;
  readonly out: string | undefined;
}

async function tellEnd({ terminal }: Context, tally: Tally, { stopped, resume, out }: Ending): Promise<void> {
  const { id, total, finished, failed, outcomes, seconds, perSecond, failedIds } = tally;
  const toStdout = out === "-";
  if (terminal.json && !toStdout)
    await terminal.answer(
      {
        id,
        total,
        finished,
        failed,
        outcomes,
        seconds,
        interrupted: stopped,
        ...(stopped ? { resume } : {}),
      },
      () => "",
    );
  const say = (text: string) => (toStdout || terminal.json ? terminal.note(text) : terminal.line(text));
  if (!terminal.json)
    await say(
      `${finished} of ${total} jobs ended, ${failed} of them badly, in ${spanText(seconds * 1_000)}${perSecond > 0 ? `, ${perSecond.toFixed(1)} a second` : ""}`,
    );
  if (!terminal.json && failedIds.length > 0)
    terminal.note(
      `berth: look at one: berth logs ${failedIds[0]} (${failedIds.join(", ")}${failed > 5 ? ", …" : ""})`,
    );
  if (!stopped) return;
  terminal.note(`berth: what was submitted goes on. To bring the rest: ${resume}`);
  terminal.note(`berth: to end it instead: berth batch cancel ${id}`);
}
