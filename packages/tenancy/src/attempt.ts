import { type Fault, isFault, isRepeatable, type Job, type JobResult, type Outcome } from "@berth/protocol";
import type { Admitted } from "./attempt-record.ts";
import type { Authority } from "./authority.ts";
import { bareResult } from "./bare-result.ts";
import type { Beginnings } from "./beginnings.ts";
import { carryOut } from "./carry-out.ts";
import type { Run } from "./run.ts";
import type { OpenSandbox, TenancyPorts } from "./tenancy-ports.ts";

export interface AttemptParts {
  readonly ports: TenancyPorts;
  readonly authority: Authority;
  /** The jobs that were taken from the queue before that one and that this tenancy knows. */
  readonly before: (queuedId: string) => readonly string[];
  readonly beginnings: Beginnings;
  readonly onTrouble: (error: unknown) => void;
}

/**
 * The next step for an attempt.
 *
 * - `end`: it ended with this result. `endedAs` decides whether it runs again, where the tenant gets another outcome.
 * - `ended-before`: its end is published already.
 * - `leave`: it stays taken, for the next look at the queue, here or by the next holder.
 * - `look-again`: the queue is not as this tenancy expected.
 * - `untouched`: init took nothing of it, and its beginning is taken back.
 * - `no-sandbox`: it has not begun, and cannot begin here.
 * - `postpone`: it has not begun, and waits for an administrator's decision, at most `waitMs`.
 */
export type Attempted =
  | { readonly next: "end"; readonly result: JobResult; readonly endedAs?: Outcome | undefined }
  | { readonly next: "ended-before" | "leave" | "look-again" | "untouched" }
  | { readonly next: "no-sandbox"; readonly error: Fault }
  | { readonly next: "postpone"; readonly error: Fault; readonly waitMs: number };

/** Pause until init has got another ping; there are several in a lease. */
const untouchedPauseMs = 250;

const lostWithItsWorker: Outcome = { kind: "lost", message: "its worker is stopping" };

/** Takes one attempt from its wait for a turn to its next step. Throws when the lease is lost, or the queue is not as expected. */
export async function attempt(parts: AttemptParts, admitted: Admitted, run: Run): Promise<Attempted> {
  const { ports } = parts;
  const beginning = new Beginning(parts, admitted);
  try {
    if (isTooLate(admitted.job, ports)) return tooLate;
    // The profile has changed, or the container has died.
    if (!ports.sandbox.isOpen(admitted.job)) await beginning.takeBack();
    run.isBegun = admitted.isBegun === true;
    return await openAndRun(parts, admitted, run, beginning);
  } catch (error) {
    // Its beginning is recorded, or may be once Redis is back, but the job will not run here. This does not wait for the answer.
    void beginning.takeBack().catch(() => {});
    throw error;
  } finally {
    admitted.turnOver?.();
  }
}

async function openAndRun(
  parts: AttemptParts,
  admitted: Admitted,
  run: Run,
  beginning: Beginning,
): Promise<Attempted> {
  const { ports, authority } = parts;
  const { sandbox, turns, clock } = ports;
  const { signal } = run;
  let opened: OpenSandbox | undefined;
  try {
    admitted.turnOver ??= await turns.take(signal);
    admitted.openingMs = clock.now();
    admitted.cold = true;
    // Opened before the beginning is recorded: a job whose sandbox cannot be opened has not begun, and may wait.
    const { leaseLeftMs } = authority;
    opened = await sandbox.open(admitted.job, { signal, leaseLeftMs });
    admitted.cold = opened.cold === true;
    return await beginAndRun(parts, admitted, opened, run, beginning);
  } catch (error) {
    if (opened) throw error;
    await beginning.takeBack();
    authority.signal.throwIfAborted();
    if (run.stopped) return interrupted(run, "before it began");
    if (!isFault(error)) throw error;
    if (isFault(error, "approval-needed"))
      return { next: "postpone", error, waitMs: error.context.expiresMs };
    return { next: "no-sandbox", error };
  } finally {
    opened?.done();
  }
}

async function beginAndRun(
  { ports, authority, onTrouble }: AttemptParts,
  admitted: Admitted,
  opened: OpenSandbox,
  run: Run,
  beginning: Beginning,
): Promise<Attempted> {
  const { clock } = ports;
  const { fetched, job } = admitted;
  authority.signal.throwIfAborted();
  if (run.stopped) {
    await beginning.takeBack();
    return interrupted(run, "before it began");
  }
  if (isTooLate(job, ports)) return tooLate;
  run.isBegun = true;
  const begun = await beginning.record();
  if (begun === "finished-before") return { next: "ended-before" };
  if (begun === "cancelled") return interrupted(run, "by request, before it began");
  if (begun === "out-of-turn") return { next: "look-again" };
  authority.check();
  beginning.handOver();
  admitted.begunMs = clock.now();
  const result = await carryOut({
    ...{ jobId: fetched.id, job, sandbox: opened, signal: run.signal, ports, onTrouble },
    fence: authority.signal,
    check: () => authority.check(),
    publish: (send) => authority.publish(send),
  });
  if (result === "untouched") {
    await beginning.untouched();
    await clock.sleep(untouchedPauseMs, authority.signal);
    return { next: "untouched" };
  }
  const stopped = result.outcome.kind === "cancelled" && run.stopped === "worker-stops";
  // A job that is safe to repeat is left to the next holder.
  if (stopped && isRepeatable(job.request, job.idempotent)) return { next: "leave" };
  // The tenant sees `cancelled`. Whether it may run again is decided as for a job whose worker died.
  return { next: "end", result, endedAs: stopped ? lostWithItsWorker : undefined };
}

/** The record in Redis that an attempt began. It is written in an earlier step, or before the command goes to the sandbox. */
class Beginning {
  readonly #parts: AttemptParts;
  readonly #admitted: Admitted;

  constructor(parts: AttemptParts, admitted: Admitted) {
    this.#parts = parts;
    this.#admitted = admitted;
  }

  async record(): Promise<"begun" | "finished-before" | "cancelled" | "out-of-turn"> {
    if (this.#admitted.isBegun) return "begun";
    const { ports, authority, before, beginnings } = this.#parts;
    const { fetched, job } = this.#admitted;
    const position = { queuedId: fetched.queuedId, before: before(fetched.queuedId) };
    beginnings.recording(fetched);
    const begun = await authority.publish(async () => {
      const answer = await ports.events.begin(fetched.id, job.attempt, position);
      if (answer === "late") throw new Error("the lease has to be renewed before a job begins");
      return answer;
    });
    if (begun !== "begun") beginnings.forget(fetched);
    return begun;
  }

  /** From here on init may have got something of it. */
  handOver(): void {
    this.#parts.beginnings.forget(this.#admitted.fetched);
  }

  /** init refused it, and has nothing of it. */
  async untouched(): Promise<void> {
    this.#parts.beginnings.recording(this.#admitted.fetched);
    await this.takeBack();
  }

  /** If the call fails, the next look at the queue repeats it. */
  async takeBack(): Promise<void> {
    const { authority, beginnings } = this.#parts;
    const { fetched } = this.#admitted;
    this.#admitted.isBegun = false;
    if (beginnings.has(fetched)) await authority.whileOurs(beginnings.takeBack(fetched));
  }
}

/** The outcome of an attempt that had not begun. */
function interrupted({ stopped }: Run, how: string): Attempted {
  if (stopped !== undefined && stopped !== "cancelled") return { next: "leave" };
  return { next: "end", result: bareResult({ kind: "cancelled", reason: how }) };
}

export function isTooLate({ deadlineAtMs }: Job, { clock }: TenancyPorts): boolean {
  return deadlineAtMs !== undefined && clock.wall() > deadlineAtMs;
}

const tooLate: Attempted = {
  next: "end",
  result: bareResult({
    kind: "refused",
    code: "deadline",
    message: "its deadline had passed before it could begin",
  }),
};
