import { isSuccess, type JobResult, type Outcome, scope, textWithEnd } from "@berth/protocol";
import type { jobOptions, OptionValues } from "./command.ts";
import { Complaint } from "./complaint.ts";
import type { Context } from "./context.ts";
import type { DoorJob, JobOrder } from "./door.ts";
import { exitCodes } from "./exit-codes.ts";
import { isBrokenPipe } from "./terminal/terminal.ts";
import { oneOf } from "./values.ts";
import { printWaiting } from "./waiting.ts";

/** How long to wait for a cancelled job's end: longer than a command's grace period, shorter if no worker has started it. */
const cancelWaitMs = { scheduled: 1_500, waiting: 1_500, running: 10_000, finished: 10_000 } as const;

/** The part of an order that the shared options set. */
export function placeOf(
  values: OptionValues<typeof jobOptions>,
): Pick<JobOrder, "session" | "agent" | "scope" | "pool" | "profile"> {
  const { session, agent, pool, profile } = values;
  return {
    ...(session === undefined ? {} : { session }),
    ...(agent === undefined ? {} : { agent }),
    ...(pool === undefined ? {} : { pool }),
    ...(profile === undefined ? {} : { profile }),
    ...(values.scope === undefined ? {} : { scope: oneOf("--scope", values.scope, scope.options) }),
  };
}

/** Runs a job to its end; Ctrl-C cancels it. Any outcome but success is a Complaint. */
export async function runJob(context: Context, order: JobOrder): Promise<JobResult> {
  const job = await submitJob(context, order);
  const result = await endOf(context, job, job.result());
  if (!isSuccess(result.outcome)) throw failure(result.outcome);
  return result;
}

/** From here on Ctrl-C must not exit: a job accepted meanwhile would run unattended. */
export async function submitJob(context: Context, order: JobOrder): Promise<DoorJob> {
  const door = await context.door();
  context.interrupts.signal();
  return door.submit(order);
}

/** Awaits `ending`. Ctrl-C or a closed output cancels the job; then it waits a bounded time for the end. */
export async function endOf<T>(context: Context, job: DoorJob, ending: Promise<T>): Promise<T> {
  const { interrupts, terminal } = context;
  const interrupted = interrupts.signal();
  const givenUp = Promise.withResolvers<never>();
  givenUp.promise.catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  const cancel = () => {
    terminal.note(`berth: cancelling the job ${job.id}`);
    const leave = () => givenUp.reject(leftAlone(interrupts.exitCode));
    job
      .cancel()
      .then(() => job.status())
      .then((state) => {
        timer = setTimeout(leave, cancelWaitMs[state]);
      })
      .catch(givenUp.reject);
  };
  interrupted.addEventListener("abort", cancel, { once: true });
  if (interrupted.aborted) cancel();
  const hint = printWaiting(context, job);
  try {
    return await Promise.race([ending, givenUp.promise]);
  } catch (error) {
    if (isBrokenPipe(error)) await job.cancel();
    throw error;
  } finally {
    hint.stop();
    clearTimeout(timer);
    interrupted.removeEventListener("abort", cancel);
  }
}

export function failure(outcome: Outcome): Complaint {
  if (outcome.kind === "refused") return new Complaint(outcome.message, { code: outcome.code });
  if (outcome.kind === "cancelled")
    return new Complaint(outcomeText(outcome), { exitCode: exitCodes.interrupted });
  const advice =
    outcome.kind === "lost" ? ["Berth does not know whether it ran; check before you repeat it"] : [];
  return new Complaint(outcomeText(outcome), { advice });
}

/** The outcome in the words that agents get; empty for a command that exited. */
export function outcomeText(outcome: Outcome): string {
  const [first = ""] = textWithEnd("", outcome).split("\n");
  if (outcome.kind === "exited") return "";
  return first.replace(/^ERR: /, "").replace(/^\[(.*)\]$/, "$1");
}

function leftAlone(exitCode: number): Complaint {
  return new Complaint("the job was asked to end and has not yet", {
    exitCode,
    advice: ["`berth why JOB` prints what it waits for; it ends as cancelled as soon as a worker reaches it"],
  });
}
