import { randomBytes } from "node:crypto";
import { join, resolve } from "node:path";
import { chosenJobId, isSuccess } from "@berth/protocol";
import { checkBatchFile } from "../batch/batch-file.ts";
import { BatchRun } from "../batch/batch-run.ts";
import { BatchStatistics } from "../batch/batch-statistics.ts";
import { type BatchSummary, summaryLines, summaryOf } from "../batch/batch-summary.ts";
import { noResults, ResultFile, type ResultSink, resultsTo } from "../batch/result-file.ts";
import type { ResultLine } from "../batch/result-line.ts";
import { resumeCommand } from "../batch/resume-command.ts";
import { isSameFile } from "../batch/same-file.ts";
import { everyLine, failedLines, type Selection } from "../batch/selection.ts";
import { StopRule } from "../batch/stop-rule.ts";
import { type Arguments, command, type OptionValues } from "../command.ts";
import { UsageError } from "../complaint.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { saveArtifacts } from "../save-artifacts.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import { counted } from "../terminal/quantities.ts";
import { isBrokenPipe } from "../terminal/terminal.ts";
import { durationMs, labelsOf, wholeNumber } from "../values.ts";

const options = {
  id: { type: "string", value: "ID", about: "names the batch; the same name again goes on where it was" },
  out: { type: "string", short: "o", value: "FILE", about: "results, one JSON line each; - is stdout" },
  report: { type: "string", value: "FILE.html", about: "a page with plots, written at the end" },
  artifacts: { type: "string", value: "DIR", about: "files that jobs keep, in DIR/INDEX/…" },
  labels: {
    type: "string",
    multiple: true,
    value: "NAME=VALUE,…",
    about: "for every job, and in its result; a line's own count before these",
  },
  "retry-failed": {
    type: "string",
    value: "RESULTS",
    about: "run only the lines that failed or were lost, by this file of results",
  },
  "max-failures": { type: "string", value: "N", about: "cancel the rest when so many have failed" },
  timeout: { type: "string", value: "TIME", about: "cancel the rest after this time: 30s, 10m, 2h" },
  "in-flight": {
    type: "string",
    value: "N",
    about: "jobs submitted and not ended, at most (1000; through a gateway, all)",
  },
  patience: {
    type: "string",
    value: "TIME",
    about: "how long a gateway may be away before it gives up (10m)",
  },
} as const;
type Values = OptionValues<typeof options>;

const defaultOutage = "10m";
const redrawMs = 500;

export const batchRun = command({
  name: "batch run",
  summary: "run a file of jobs, one JSON line each",
  positionals: ["FILE"],
  about: `A line is a job: {"tenant": "acme", "session": "s1", "request": {"kind": "exec", "command": "python3 main.py"}}
An argv in place of the command runs without a shell. A line may have labels: {"labels": {"run": "7"}, …}
Jobs of a tenant's session run in order, sessions and tenants side by side. All lines are checked before the first is submitted.
Ctrl-C stops submitting; submitted jobs go on. The same --id (and --out) later runs what is missing, and runs nothing twice.
A gateway gets the whole batch, part by part. The command reconnects when the connection breaks or the gateway restarts.
A run that stops early prints the command that continues it. With --max-failures or --timeout every job that had not ended is
cancelled, and has such a line in the results: --retry-failed runs those again.
The exit code is 0 when all jobs succeeded, 1 when some did not, 69 when the fleet was away for too long, 124 when --timeout was over,
130 when it was interrupted.`,
  examples: [
    { line: "berth batch run jobs.jsonl --out results.jsonl", note: "" },
    { line: "berth batch run jobs.jsonl --out results.jsonl --id nightly-7", note: "a name to go on with" },
    {
      line: "berth batch run jobs.jsonl --out results.jsonl --report run.html",
      note: "and a page to look at",
    },
    {
      line: "berth batch run jobs.jsonl --retry-failed results.jsonl --out again.jsonl",
      note: "what failed, once more",
    },
    {
      line: "berth batch run jobs.jsonl --artifacts out",
      note: "with the files that jobs name in request.artifacts",
    },
    {
      line: "berth batch run jobs.jsonl --out - | jq -c 'select(.exitCode != 0)'",
      note: "into another program",
    },
  ],
  options,
  run,
});

async function run({ values, positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const { terminal, interrupts, directory } = context;
  const file = resolve(directory, positionals[0] ?? "");
  const id = batchId(values.id);
  const limits = limitsOf(values);
  const labels = labelsOf("--labels", values.labels);
  await refuseOverwriting(values, context, file);
  const selection = await selectionOf(values, context, { file, total: await checkBatchFile(file, labels) });
  const { total } = selection;
  const door = await context.door();
  const jobs = new BatchRun({ file, labels, selection });
  const { inFlight, outageMs } = limits;
  const batch = await door.batches.run({ id, orders: jobs.orders(), total, inFlight, outageMs });
  const statistics = new BatchStatistics();
  const sink = await sinkOf(values.out, context, batch.prefix, (line) => {
    if (jobs.noteEarlier(line)) statistics.add(line);
  });
  const before = statistics.finished;
  const beganMs = performance.now();
  const stop = interrupts.signal();
  const ended: Ended = { stopped: undefined, isComplete: false };
  if (!terminal.json)
    terminal.note(
      `berth: batch ${id}, ${counted(total, "job")}${before > 0 ? `, ${before} done before` : ""}${selection.note}`,
    );
  const bar = new ProgressBar(terminal, id, {
    amount: (count) => `${Math.round(count)}`,
    rate: (perSecond) => perSecond.toFixed(1),
  });
  const draw = () =>
    bar.show(statistics.finished, total, statistics.failed > 0 ? `, ${statistics.failed} failed` : "");
  const redrawing = setInterval(draw, redrawMs);
  const cancelling = Promise.withResolvers<never>();
  cancelling.promise.catch(() => {});
  const rule = new StopRule(limits, () => void batch.cancel().catch(cancelling.reject));
  const onInterrupt = () => batch.leave();
  stop.addEventListener("abort", onInterrupt, { once: true });
  if (stop.aborted) onInterrupt();
  const finish = async () => {
    const seconds = (performance.now() - beganMs) / 1_000;
    const summary = summaryOf({ id, total, statistics, before, seconds });
    const resume = resumeCommand(positionals[0] ?? "", { ...values, id, json: terminal.json });
    await printEnd(context, summary, { ...ended, resume, statistics, out: values.out });
    if (values.report !== undefined) await writeReport(context, values.report, summary, statistics);
  };
  try {
    draw();
    for await (const line of untilFailed(jobs.results(batch), cancelling.promise)) {
      if (values.artifacts !== undefined)
        await saveArtifacts(context, line.value.artifacts ?? [], join(values.artifacts, String(line.index)));
      await sink.add(line);
      statistics.add(line);
      draw();
      // Stopping the batch cancels jobs; those do not count as failures.
      if (!isSuccess(line.outcome) && !rule.stopped) rule.failed();
    }
  } catch (error) {
    bar.end(false);
    if (!isBrokenPipe(error)) await finish();
    throw error;
  } finally {
    rule.end();
    clearInterval(redrawing);
    stop.removeEventListener("abort", onInterrupt);
    batch.leave();
    bar.end(false);
    await sink.close();
  }
  ended.stopped = rule.stopped?.text;
  ended.isComplete = statistics.finished >= total;
  await finish();
  if (rule.stopped) return rule.stopped.why === "timeout" ? exitCodes.timedOut : exitCodes.failed;
  if (stop.aborted && !ended.isComplete) return interrupts.exitCode;
  return statistics.failed === 0 && ended.isComplete ? exitCodes.ok : exitCodes.failed;
}

interface Ended {
  /** Why the batch was stopped before all its jobs ended. */
  stopped: string | undefined;
  /** Every job has a result. */
  isComplete: boolean;
}

function batchId(given: string | undefined): string {
  const id = given ?? `batch-${randomBytes(5).toString("hex")}`;
  const parsed = chosenJobId.safeParse(`${id}-0`);
  if (!parsed.success || id.length > 100)
    throw new UsageError(`--id: ${id} is not 1 to 100 letters, digits, - and _`);
  return id;
}

function limitsOf(values: Values) {
  const number = (name: "max-failures" | "in-flight") =>
    values[name] === undefined ? undefined : wholeNumber(`--${name}`, values[name]);
  return {
    maxFailures: number("max-failures"),
    inFlight: number("in-flight"),
    timeoutMs: values.timeout === undefined ? undefined : durationMs("--timeout", values.timeout),
    outageMs: durationMs("--patience", values.patience ?? defaultOutage),
  };
}

/** Refuses an --out or --report that is one of the files to read, or the same file as the other. */
async function refuseOverwriting(values: Values, { directory }: Context, jobs: string): Promise<void> {
  const { "retry-failed": earlier, out, report } = values;
  const at = (path: string | undefined) => (path === undefined ? undefined : resolve(directory, path));
  const results = out === "-" ? undefined : at(out);
  const pairs = [
    ["--out", results, "FILE, the jobs", jobs],
    ["--out", results, "--retry-failed", at(earlier)],
    ["--report", at(report), "FILE, the jobs", jobs],
    ["--report", at(report), "--retry-failed", at(earlier)],
    ["--report", at(report), "--out", results],
  ] as const;
  for (const [option, written, other, path] of pairs)
    if (written !== undefined && path !== undefined && (await isSameFile(written, path)))
      throw new UsageError(`${option}: this is the file of ${other}; choose another file`);
}

async function selectionOf(
  values: Values,
  { directory }: Context,
  jobs: { readonly file: string; readonly total: number },
): Promise<Selection & { readonly note: string }> {
  const { "retry-failed": earlier } = values;
  if (earlier === undefined) return { ...everyLine(jobs.total), note: "" };
  const path = resolve(directory, earlier);
  const failed = await failedLines(path, jobs);
  return { ...failed, note: ` of ${jobs.total}: what failed in ${earlier}` };
}

async function sinkOf(
  out: string | undefined,
  context: Context,
  prefix: string,
  onEarlier: (line: ResultLine) => void,
): Promise<ResultSink> {
  if (out === undefined) return noResults;
  if (out === "-") return resultsTo(context.terminal);
  return ResultFile.open(resolve(context.directory, out), prefix, onEarlier);
}

/** Passes results on until they end, or throws as soon as `failed` rejects. */
async function* untilFailed<T>(results: AsyncGenerator<T>, failed: Promise<never>): AsyncGenerator<T> {
  try {
    for (;;) {
      const next = results.next();
      next.catch(() => {});
      const { value, done } = await Promise.race([next, failed]);
      if (done) return;
      yield value;
    }
  } finally {
    // Do not await: the pending next() settles only when the batch is left.
    void results.return(undefined).catch(() => {});
  }
}

interface Ending extends Ended {
  readonly resume: string;
  readonly statistics: BatchStatistics;
  readonly out: string | undefined;
}

async function printEnd({ terminal }: Context, summary: BatchSummary, ending: Ending): Promise<void> {
  const { stopped, isComplete, resume, out } = ending;
  const { id, failed } = summary;
  const toStdout = out === "-";
  const goesOn = !isComplete && stopped === undefined;
  if (terminal.json && !toStdout)
    await terminal.answer(
      {
        ...summary,
        interrupted: goesOn,
        ...(stopped === undefined ? {} : { stopped }),
        ...(goesOn ? { resume } : {}),
      },
      () => "",
    );
  const say = (text: string) => (toStdout ? terminal.note(text) : terminal.line(text));
  if (!terminal.json) for (const line of summaryLines(summary)) await say(line);
  const [first, ...others] = ending.statistics.failures.slice(0, 5).map((job) => job.id);
  if (!terminal.json && first !== undefined) {
    const more = others.length > 0 ? ` (also ${others.join(", ")}${failed > 5 ? ", …" : ""})` : "";
    terminal.note(`berth: look at one: berth logs ${first}${more}`);
  }
  if (stopped !== undefined) terminal.note(`berth: the rest was cancelled: ${stopped}`);
  if (!goesOn) return;
  terminal.note(`berth: submitted jobs go on. To run the rest: ${resume}`);
  terminal.note(`berth: to end it instead: berth batch cancel ${id}`);
}

async function writeReport(
  { terminal, directory }: Context,
  file: string,
  summary: BatchSummary,
  statistics: BatchStatistics,
): Promise<void> {
  const { writeReportPage } = await import("../report/report-page.ts");
  await writeReportPage(resolve(directory, file), summary, statistics);
  if (!terminal.json) terminal.note(`berth: the report is in ${file}`);
}
