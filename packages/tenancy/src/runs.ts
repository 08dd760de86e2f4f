import { assertNever, type Fault, isHostFault, type JobResult, type SandboxKey } from "@berth/protocol";
import { attempt, isTooLate } from "./attempt.ts";
import { type Admitted, attemptRecord, stamped } from "./attempt-record.ts";
import type { Authority } from "./authority.ts";
import { bareResult } from "./bare-result.ts";
import type { Beginnings } from "./beginnings.ts";
import type { Endings, EndOptions, Successor } from "./endings.ts";
import type { Line } from "./line.ts";
import { Run, type StopReason } from "./run.ts";
import type { Sessions } from "./sessions.ts";
import type { BeginResult, FetchedJob, TenancyPorts } from "./tenancy-ports.ts";

export interface RunsOptions {
  readonly key: SandboxKey;
  readonly epoch: number;
  readonly onNoSandbox: "wait" | "refuse";
  readonly ports: TenancyPorts;
  readonly authority: Authority;
  readonly line: Line;
  readonly beginnings: Beginnings;
  readonly sessions: Sessions<Admitted>;
  readonly endings: Endings;
  /** Whether jobs may begin now. */
  readonly mayBegin: () => boolean;
  /** Called when a run has ended, or a job was removed from its queue. */
  readonly onEnded: () => void;
  /** Called when the queue may differ from what this tenancy knows. */
  readonly onStale: () => void;
  /** Called when the sandbox cannot be started here, and the job waits for another worker. */
  readonly onNoSandboxHere: (error: Fault) => void;
  readonly onTrouble: (error: unknown) => void;
}

/** init gets several pings in a lease. A sandbox that refuses a job this often is broken. */
const untouchedMost = 40;

/**
 * The attempts that a tenancy works on, each from its turn in its session to its end.
 *
 *   parked ──its session is free──▶ running ──end published──▶ completing ──out of the queue──▶ gone
 *
 * Most leave the queue in the step that publishes their end, and are never completing. In that step the next job of the session begins,
 * if it is parked already: one script for each job of a session instead of two.
 */
export class Runs {
  readonly #options: RunsOptions;
  /** By their ids in the queue, which differ between two attempts of a job. */
  readonly #running = new Map<string, Run>();
  readonly #completing = new Map<string, Promise<void>>();
  /** How often the sandbox refused a job without taking anything of it. */
  readonly #untouchedTimes = new Map<string, number>();

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#running.size + this.#completing.size === 0;
  }

  get isCompleting(): boolean {
    return this.#completing.size > 0;
  }

  get jobIds(): string[] {
    return [...this.#running.values()].map(({ jobId }) => jobId);
  }

  has(queuedId: string): boolean {
    return this.#running.has(queuedId) || this.#completing.has(queuedId);
  }

  stopAll(why: StopReason): void {
    for (const run of this.#running.values()) run.stop(why);
  }

  /** Whether a job of that id runs here. */
  cancel(jobId: string): boolean {
    const runs = [...this.#running.values()].filter((run) => run.jobId === jobId);
    for (const run of runs) run.stop("cancelled");
    return runs.length > 0;
  }

  /** Ends a parked job that was cancelled. */
  endParked(parked: Admitted): void {
    const result = bareResult({ kind: "cancelled", reason: "by request, before it began" });
    this.#track(parked, async (run) => {
      run.isBegun = true;
      await this.finish(parked, result);
    });
  }

  /** Stops jobs that wait for a turn or for the sandbox. They stay taken, for the next look at the queue. */
  async backInLine(): Promise<void> {
    const waiting = [...this.#running.values()].filter(({ isBegun }) => !isBegun);
    for (const run of waiting) run.stop("back-in-line");
    await Promise.all(waiting.map(({ end }) => end));
  }

  async ended(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ end }) => end));
    await Promise.all(this.#completing.values());
  }

  /** Begins what may begin: the first job of each free session. */
  begin(): void {
    const { sessions, mayBegin } = this.#options;
    if (!mayBegin()) return;
    for (let next = sessions.take(); next !== undefined; next = sessions.take()) {
      const admitted = next;
      this.#track(
        admitted,
        (run) => this.#execute(admitted, run),
        () => sessions.done(admitted),
      );
    }
  }

  /** Runs a job that began when it was taken, or takes its beginning back and leaves it in line. */
  async beginTaken(admitted: Admitted): Promise<void> {
    const { sessions, beginnings, authority, mayBegin } = this.#options;
    const { fetched, turnOver } = admitted;
    const isNow = mayBegin();
    sessions.add(isNow ? admitted : { fetched, job: admitted.job });
    if (isNow) return this.begin();
    turnOver?.();
    await authority.whileOurs(beginnings.takeBack(fetched));
  }

  /** `onOver` runs after a failed job has marked the line stale, so that no other job begins before that. */
  #track({ fetched }: Admitted, work: (run: Run) => Promise<void>, onOver = () => {}): void {
    const { authority, onEnded, onTrouble, onStale } = this.#options;
    const run = new Run(fetched.id);
    this.#running.set(fetched.queuedId, run);
    void work(run)
      .catch((error: unknown) => {
        if (authority.signal.aborted) return;
        onTrouble(error);
        onStale();
      })
      .finally(() => {
        onOver();
        this.#running.delete(fetched.queuedId);
        if (!authority.signal.aborted) this.begin();
        onEnded();
        run.over();
      });
  }

  async #execute(admitted: Admitted, run: Run): Promise<void> {
    const { ports, authority, line, beginnings, onTrouble, onStale } = this.#options;
    const before = (queuedId: string) => line.before(queuedId);
    const attempted = await attempt({ ports, authority, before, beginnings, onTrouble }, admitted, run);
    switch (attempted.next) {
      case "end":
        return await this.finish(admitted, attempted.result, {
          endedAs: attempted.endedAs,
          isCancelled: run.stopped === "cancelled",
        });
      case "ended-before":
        return await this.#endedBefore(admitted.fetched);
      case "look-again":
        return onStale();
      case "untouched":
        return await this.#untouched(admitted);
      case "no-sandbox":
        return await this.#noSandbox(admitted, attempted.error);
      case "postpone":
        return await this.#options.endings.postpone(admitted.fetched.id, admitted.job, attempted);
      case "leave":
        return;
      default:
        return assertNever(attempted);
    }
  }

  /** Another holder published its end, and may have died before it wrote the dead letter. */
  async #endedBefore(fetched: FetchedJob): Promise<void> {
    const { ports, endings } = this.#options;
    const progress = await ports.events.progress(fetched.id, fetched.attempt);
    if (progress.state === "finished") await endings.addMissingDeadLetter(fetched, progress.result);
    this.complete(fetched);
  }

  /** It begins again, unless the sandbox keeps refusing it although pings arrive. */
  async #untouched(admitted: Admitted): Promise<void> {
    const { queuedId } = admitted.fetched;
    const times = (this.#untouchedTimes.get(queuedId) ?? 0) + 1;
    this.#untouchedTimes.set(queuedId, times);
    if (times < untouchedMost) return this.#options.onStale();
    const message = "the sandbox went on refusing it, as if its worker's lease were over";
    await this.finish(admitted, bareResult({ kind: "lost", message }));
  }

  async #noSandbox(admitted: Admitted, error: Fault): Promise<void> {
    const { onNoSandbox, onNoSandboxHere } = this.#options;
    if ((await this.#mayStartElsewhere(error)) || (error.retry && onNoSandbox === "wait"))
      return onNoSandboxHere(error);
    // No sandbox means no execution: the job is refused with the reason, other tenants are not affected.
    await this.finish(admitted, bareResult({ kind: "refused", code: error.code, message: error.message }));
  }

  async #mayStartElsewhere(error: Fault): Promise<boolean> {
    if (!isHostFault(error)) return false;
    // While Redis does not answer, the job is not refused.
    const answer = await this.#options.ports.placement.startFailed().catch(() => "elsewhere" as const);
    return answer === "elsewhere";
  }

  /** Publishes how an attempt ended. */
  async finish(
    admitted: Admitted,
    bare: JobResult,
    { endedAs, isCancelled = false }: Pick<EndOptions, "endedAs" | "isCancelled"> = {},
  ): Promise<void> {
    const { ports, endings, line, key, epoch } = this.#options;
    const { clock, report } = ports;
    const { fetched, job } = admitted;
    const result = stamped(admitted, bare, clock);
    const endedMs = clock.now();
    const { retriedInMs: inMs, hasLeft } = await endings.end(fetched.id, job, result, {
      ...{ endedAs, isCancelled },
      successor: () => this.#successorOf(admitted),
    });
    if (hasLeft) line.left(fetched.queuedId);
    else this.complete(fetched);
    this.#untouchedTimes.delete(fetched.queuedId);
    const outcome = inMs === undefined ? result.outcome : (endedAs ?? result.outcome);
    const record = attemptRecord(admitted, { key, epoch, outcome, result, endedMs, clock });
    report(
      inMs === undefined ? { event: "job.finished", ...record } : { event: "job.retrying", inMs, ...record },
    );
  }

  /** The next job of the session, if it could begin at once. It then begins in the step that ends this one. */
  #successorOf(ended: Admitted): Successor | undefined {
    const { ports, sessions, line, beginnings, mayBegin } = this.#options;
    const successor = mayBegin() ? sessions.successorOf(ended) : undefined;
    if (!successor || !ports.sandbox.isOpen(successor.job) || isTooLate(successor.job, ports))
      return undefined;
    successor.turnOver = ports.turns.takeNow();
    if (successor.turnOver === undefined) return undefined;
    sessions.beginSuccessor(successor);
    beginnings.recording(successor.fetched);
    const { id: jobId, queuedId } = successor.fetched;
    return {
      beginner: {
        jobId,
        attempt: successor.job.attempt,
        position: { queuedId, before: line.before(queuedId) },
      },
      onSent: (answer) =>
        this.#track(
          successor,
          (run) => this.#runSuccessor(successor, run, answer),
          () => sessions.done(successor),
        ),
    };
  }

  async #runSuccessor(successor: Admitted, run: Run, answer: Promise<BeginResult>): Promise<void> {
    const { beginnings } = this.#options;
    run.isBegun = true;
    try {
      successor.isBegun = (await answer) === "begun";
      if (!successor.isBegun) beginnings.forget(successor.fetched);
    } catch (error) {
      successor.turnOver?.();
      // It may have begun in a step whose answer was lost.
      void beginnings.takeBack(successor.fetched).catch(() => {});
      throw error;
    }
    await this.#execute(successor, run);
  }

  /** Removes an attempt whose end is published from its queue. Its session goes on meanwhile. */
  complete(fetched: FetchedJob): void {
    const { authority, line, onStale, onEnded } = this.#options;
    const completing = authority
      .whileOurs(fetched.complete())
      .then(
        () => line.left(fetched.queuedId),
        // Perhaps only the answer was lost. The next look at the queue finds its end published.
        () => onStale(),
      )
      .finally(() => {
        this.#completing.delete(fetched.queuedId);
        onEnded();
      });
    this.#completing.set(fetched.queuedId, completing);
  }
}
