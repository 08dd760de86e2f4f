import {
  assertNever,
  type Fault,
  isHostFault,
  type JobResult,
  type Outcome,
  type SandboxKey,
} from "@berth/protocol";
import { attempt } from "./attempt.ts";
import { type Admitted, attemptRecord, stamped } from "./attempt-record.ts";
import type { Authority } from "./authority.ts";
import { bareResult } from "./bare-result.ts";
import type { Endings } from "./endings.ts";
import type { Line } from "./line.ts";
import { Run, type StopReason } from "./run.ts";
import type { Sessions } from "./sessions.ts";
import type { FetchedJob, TenancyPorts } from "./tenancy-ports.ts";

export interface RunsOptions {
  readonly key: SandboxKey;
  readonly epoch: number;
  readonly onNoSandbox: "wait" | "refuse";
  readonly ports: TenancyPorts;
  readonly authority: Authority;
  readonly line: Line;
  readonly sessions: Sessions<Admitted>;
  readonly endings: Endings;
  /** Whether jobs may begin now. */
  readonly mayBegin: () => boolean;
  /** A run or a completion has ended. */
  readonly onEnded: () => void;
  /** The queue may not be as we think. */
  readonly onDoubt: () => void;
  /** The sandbox cannot be started here; the job waits for another worker. */
  readonly onNoSandboxHere: (error: Fault) => void;
  readonly onTrouble: (error: unknown) => void;
}

/** A sandbox hears several times in a lease that it may go on; one that refuses a job so often does not want to. */
const untouchedMost = 40;

/**
 * The attempts that a tenancy works on, each from its turn in its session to its end.
 *
 *   parked ──its session is free──▶ running ──end published──▶ completing ──out of the queue──▶ gone
 *
 * Most leave the queue in the step that publishes their end, and are never completing.
 */
export class Runs {
  readonly #options: RunsOptions;
  /** By their ids in the queue: two attempts of a job are two. */
  readonly #running = new Map<string, Run>();
  readonly #completing = new Map<string, Promise<void>>();
  /** How often the sandbox took nothing of a job. */
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

  /** Ends a parked job that somebody cancelled. */
  endParked(parked: Admitted): void {
    const result = bareResult({ kind: "cancelled", reason: "by request, before it began" });
    this.#track(parked, async (run) => {
      run.isBegun = true;
      await this.finish(parked, result);
    });
  }

  /** Those that wait for a turn or for the sandbox stay taken, for whoever looks at the queue again. */
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

  /** One that began when it was taken. It runs now, or its beginning is taken back and it stays in line. */
  async beginTaken(admitted: Admitted): Promise<void> {
    const { sessions, ports, authority, mayBegin } = this.#options;
    const { fetched, turnOver } = admitted;
    const isNow = mayBegin();
    sessions.add(isNow ? admitted : { fetched: { ...fetched, isBegun: false }, job: admitted.job });
    if (isNow) return this.begin();
    turnOver?.();
    await authority.whileOurs(ports.events.unbegin(fetched.id, fetched.attempt));
  }

  /** `onOver`: after doubts about it are noted, so that no other job begins before they are. */
  #track({ fetched }: Admitted, work: (run: Run) => Promise<void>, onOver = () => {}): void {
    const { authority, onEnded, onTrouble, onDoubt } = this.#options;
    const run = new Run(fetched.id);
    this.#running.set(fetched.queuedId, run);
    void work(run)
      .catch((error: unknown) => {
        if (authority.signal.aborted) return;
        onTrouble(error);
        onDoubt();
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
    const { ports, authority, line, onTrouble, onDoubt } = this.#options;
    const before = (queuedId: string) => line.before(queuedId);
    const attempted = await attempt({ ports, authority, before, onTrouble }, admitted, run);
    switch (attempted.next) {
      case "end":
        return await this.finish(admitted, attempted.result, attempted.endedAs);
      case "complete":
        return this.complete(admitted.fetched);
      case "look-again":
        return onDoubt();
      case "untouched":
        return await this.#untouched(admitted);
      case "no-sandbox":
        return await this.#noSandbox(admitted, attempted.error);
      case "leave":
        return;
      default:
        return assertNever(attempted);
    }
  }

  /** It begins again, unless the sandbox goes on refusing it although it hears of us. */
  async #untouched(admitted: Admitted): Promise<void> {
    const { queuedId } = admitted.fetched;
    const times = (this.#untouchedTimes.get(queuedId) ?? 0) + 1;
    this.#untouchedTimes.set(queuedId, times);
    if (times < untouchedMost) return this.#options.onDoubt();
    const message = "the sandbox went on refusing it, as if its worker's lease were over";
    await this.finish(admitted, bareResult({ kind: "lost", message }));
  }

  async #noSandbox(admitted: Admitted, error: Fault): Promise<void> {
    const { onNoSandbox, onNoSandboxHere } = this.#options;
    if ((await this.#mayStartElsewhere(error)) || (error.retry && onNoSandbox === "wait"))
      return onNoSandboxHere(error);
    // No sandbox means no execution: the job is refused with the reason, other tenants are not touched.
    await this.finish(admitted, bareResult({ kind: "refused", code: error.code, message: error.message }));
  }

  async #mayStartElsewhere(error: Fault): Promise<boolean> {
    if (!isHostFault(error)) return false;
    // While Redis does not answer, the job is not refused.
    const answer = await this.#options.ports.placement.startFailed().catch(() => "elsewhere" as const);
    return answer === "elsewhere";
  }

  /** Publishes how an attempt ended. */
  async finish(admitted: Admitted, bare: JobResult, endedAs?: Outcome): Promise<void> {
    const { ports, endings, line, key, epoch } = this.#options;
    const { clock, report } = ports;
    const { fetched, job } = admitted;
    const result = stamped(admitted, bare, clock);
    const endedMs = clock.now();
    const { retriedInMs: inMs, hasLeft } = await endings.end(fetched.id, job, result, endedAs);
    if (hasLeft) line.left(fetched.queuedId);
    else this.complete(fetched);
    this.#untouchedTimes.delete(fetched.queuedId);
    const outcome = inMs === undefined ? result.outcome : (endedAs ?? result.outcome);
    const record = attemptRecord(admitted, { key, epoch, outcome, endedMs, clock });
    report(
      inMs === undefined ? { event: "job.finished", ...record } : { event: "job.retrying", inMs, ...record },
    );
  }

  /** Takes an attempt out of its queue whose end is published. Its session goes on meanwhile. */
  complete(fetched: FetchedJob): void {
    const { authority, line, onDoubt, onEnded } = this.#options;
    const completing = authority
      .whileOurs(fetched.complete())
      .then(
        () => line.left(fetched.queuedId),
        // Perhaps only the answer was lost. Whoever looks again sees that its end is published.
        () => onDoubt(),
      )
      .finally(() => {
        this.#completing.delete(fetched.queuedId);
        onEnded();
      });
    this.#completing.set(fetched.queuedId, completing);
  }
}
