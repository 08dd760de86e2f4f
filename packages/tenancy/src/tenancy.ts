import {
  assertNever,
  type Fault,
  isFault,
  isHostFault,
  type Job,
  type JobResult,
  job as jobSchema,
  type Outcome,
  problemsOf,
  type SandboxKey,
  writesRefusedMs,
} from "@berth/protocol";
import { attempt, backInLine, type Run, stoppingReason } from "./attempt.ts";
import { type Admitted, attemptRecord } from "./attempt-record.ts";
import { Authority } from "./authority.ts";
import { bareResult } from "./bare-result.ts";
import { settleDeadEpoch } from "./dead-epoch.ts";
import { Endings } from "./endings.ts";
import { Line } from "./line.ts";
import { mayPass } from "./passing.ts";
import { Sessions } from "./sessions.ts";
import type { FetchedJob, TenancyPorts } from "./tenancy-ports.ts";

export interface TenancyOptions {
  readonly key: SandboxKey;
  readonly epoch: number;
  readonly leaseMs: number;
  /** By the clock handed in, before the lease was asked for: the answer may have taken long. */
  readonly takenAtMs: number;
  /** Jobs of different sessions that run at once. */
  readonly parallel: number;
  /** Without work for this long, the sandbox is given up; 0: never. */
  readonly idleMs: number;
  /** Held for this long, it is given up as soon as it has no work; 0: never. */
  readonly maxAgeMs: number;
  /** What becomes of jobs when no worker can start their sandbox, for reasons that may pass. */
  readonly onNoSandbox: "wait" | "refuse";
  /** Whether the container goes when the tenancy ends by order of its worker. */
  readonly removeOnStop: boolean;
}

/**
 * How a tenancy ended. `handed-back`: its queue still has jobs, and the sandbox should be offered again. `no-sandbox`: the same,
 * and no sandbox could be had here.
 */
export type TenancyEnd = "released" | "handed-back" | "no-sandbox" | "fenced";

/** Fetched ahead, so that a session with many jobs does not hide the others. */
const parkedMost = 128;
/** Pause after the job source failed, as it does while Redis is away. */
const troublePauseMs = 250;
/** Waiting for jobs to end is progress too, told this often. */
const roundMs = 1_000;
/** A sandbox hears several times in a lease that it may go on; one that refuses a job so often does not want to. */
const untouchedMost = 40;
const writesRefused = `Redis refuses to write; what runs goes on for up to ${writesRefusedMs / 1_000} s`;

/**
 * The stretch of time in which this worker holds one sandbox.
 *
 *   opening ──▶ settling ──▶ working ◀──▶ idle ──queue empty──▶ released
 *                              │  └──asked to yield──▶ yielding ──jobs left──▶ handed back
 *                              └──lease lost, or not renewed in time──▶ fenced
 *
 * Promises: a job leaves its queue only with or after its terminal record; nothing is published with an epoch
 * that no longer holds; a job that began and whose end nobody knows is not begun again unless it is safe to repeat. When it
 * cannot renew in time it stops by itself, without asking anybody. That the container answers is its link's to see: one that does
 * not is removed, what ran in it ends as lost, and the next job gets a fresh one.
 */
export class Tenancy {
  readonly #options: TenancyOptions;
  readonly #ports: TenancyPorts;
  readonly #sessions: Sessions<Admitted>;
  readonly #authority: Authority;
  /** By their ids in the queue: two attempts of a job are two. */
  readonly #runs = new Map<string, Run>();
  readonly #completing = new Map<string, Promise<void>>();
  /** How often the sandbox took nothing of a job. */
  readonly #untouchedTimes = new Map<string, number>();
  readonly #line = new Line();
  readonly #endings: Endings;
  readonly #sinceMs: number;
  #idleSinceMs: number;
  #yielding = false;
  #stopping = false;
  #noSandbox = false;
  #adopting = false;
  #adoption: Promise<void> | undefined;
  #lookedMs: number;
  #lastTrouble: string | undefined;
  #wake = Promise.withResolvers<void>();

  constructor(options: TenancyOptions, ports: TenancyPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#sessions = new Sessions(options.parallel, ({ job }) => job.session);
    this.#sinceMs = ports.clock.now();
    this.#idleSinceMs = this.#sinceMs;
    this.#lookedMs = this.#sinceMs;
    const { leaseMs, takenAtMs } = options;
    this.#authority = new Authority({
      ...{ leaseMs, takenAtMs, clock: ports.clock, lease: ports.lease },
      onLost: (why) => this.#lost(why),
      onPaused: () => this.yield(),
      onRefused: () => this.#trouble(new Error(writesRefused)),
      onUnsaid: (error) => this.#trouble(error),
    });
    const publish: Authority["publish"] = (say) => this.#authority.publish(say);
    this.#endings = new Endings({ key: options.key, ports, publish });
  }

  get key(): SandboxKey {
    return this.#options.key;
  }

  /** Since when nothing runs or waits here, or undefined while something does. */
  get idleSinceMs(): number | undefined {
    const busy = this.#sessions.running + this.#sessions.parked > 0 || this.#adopting;
    return busy ? undefined : this.#idleSinceMs;
  }

  get lastTrouble(): string | undefined {
    return this.#lastTrouble;
  }

  get yielding(): boolean {
    return this.#yielding;
  }

  /** Of the jobs that run or wait here. */
  get jobIds(): string[] {
    const running = [...this.#runs.values()].map(({ jobId }) => jobId);
    return [...running, ...this.#sessions.waiting.map(({ fetched }) => fetched.id)];
  }

  /** Takes no more jobs, finishes those that run, and gives the sandbox up. */
  yield(): void {
    if (this.#yielding) return;
    this.#yielding = true;
    this.#stir();
    void this.#ports.jobs.wake().catch(() => {});
  }

  /** As `yield`, because the worker stops: the container may be left for its next life. */
  stop(): void {
    this.#stopping = true;
    this.yield();
  }

  /** Ends what runs; what is safe to repeat goes back in line, the rest ends as cancelled. */
  abandon(): void {
    this.stop();
    for (const { abort } of this.#runs.values()) abort.abort(stoppingReason);
  }

  /** Ends a job that runs or waits here. One still in its queue ends when its turn comes. */
  cancel(jobId: string): void {
    const running = [...this.#runs.values()].filter((run) => run.jobId === jobId);
    for (const { abort } of running) abort.abort("by request");
    if (running.length > 0) return;
    const parked = this.#sessions.remove(({ fetched }) => fetched.id === jobId);
    if (!parked) return;
    const result = bareResult({ kind: "cancelled", reason: "by request, before it began" });
    this.#track(parked, () => this.#finish(parked, result), true);
  }

  /**
   * Opens the sandbox before any job asks: what an earlier life of the worker left is adopted while it lives, and what that life left
   * running is ended. Until then, or until that life's own lease would be over, the sandbox is not given up: it would run beside the next
   * holder's. Once; does not throw.
   */
  adopt(): Promise<void> {
    this.#adoption ??= this.#adopt();
    return this.#adoption;
  }

  async #adopt(): Promise<void> {
    const { sandbox, clock } = this.#ports;
    const { signal, leaseLeftMs } = this.#authority;
    this.#adopting = true;
    try {
      (await sandbox.open(undefined, { signal, leaseLeftMs })).done();
      this.#adopted();
    } catch (error) {
      if (!signal.aborted) this.#trouble(error);
      const overMs = this.#sinceMs + this.#options.leaseMs - clock.now();
      void clock.sleep(Math.max(0, overMs), signal).then(
        () => this.#adopted(),
        () => {},
      );
    }
  }

  #adopted(): void {
    this.#adopting = false;
    this.#idleSinceMs = this.#ports.clock.now();
    this.#stir();
  }

  /** From the taken lease to its end. Does not throw. */
  async run(): Promise<TenancyEnd> {
    const renewing = this.#authority.keep();
    let end: TenancyEnd = "fenced";
    try {
      end = await this.#authority.whileOurs(this.#work());
    } catch (error) {
      if (!this.#authority.signal.aborted) this.#trouble(error);
      end = this.#authority.signal.aborted ? "fenced" : await this.#handBack().catch(() => "fenced" as const);
    } finally {
      this.#authority.close();
      await Promise.all([renewing, ...[...this.#runs.values()].map(({ end: run }) => run)]);
      await Promise.all(this.#completing.values());
      await this.#ports.jobs.close().catch(() => {});
      const remove = !this.#stopping || this.#options.removeOnStop || end === "fenced";
      await this.#ports.sandbox.close({ remove }).catch((error) => this.#trouble(error));
    }
    return end;
  }

  /** Lines up again what was taken from the queue, by whomever, and has not begun here. */
  async #lineUp(): Promise<void> {
    const { doubts } = this.#line;
    const waiting = [...this.#runs.values()].filter(({ isBegun }) => !isBegun);
    for (const { abort } of waiting) abort.abort(backInLine);
    await Promise.all(waiting.map(({ end }) => end));
    this.#sessions.empty();
    const here = new Set([...this.#runs.keys(), ...this.#completing.keys()]);
    const taken = await this.#ports.jobs.active();
    const left = taken.filter(({ queuedId }) => !here.has(queuedId));
    this.#line.found(taken.map(({ queuedId }) => queuedId));
    await this.#settle(left);
    this.#line.settle(doubts);
  }

  async #settle(left: readonly FetchedJob[]): Promise<void> {
    const { events, report } = this.#ports;
    const message = "its worker died while it ran; it may have run in part and was not run again";
    const counts = await settleDeadEpoch({
      left,
      events,
      read: (fetched) => this.#read(fetched),
      onAgain: (fetched) => this.#admit(fetched),
      onTold: async (fetched, result) => {
        await this.#endings.told(fetched, result);
        await fetched.complete();
      },
      onLost: (fetched, job) => this.#finish({ fetched, job }, bareResult({ kind: "lost", message })),
      onStep: () => this.#authority.round(),
    });
    if (counts.lost + counts.again + counts.done > 0)
      report({ event: "tenancy.settled", key: this.key, ...counts });
  }

  async #work(): Promise<TenancyEnd> {
    let told = false;
    for (;;) {
      this.#authority.signal.throwIfAborted();
      this.#authority.round();
      if (this.#yielding) return await this.#handBack();
      try {
        if (await this.#round()) return "released";
        told = false;
      } catch (error) {
        this.#authority.signal.throwIfAborted();
        if (!told) this.#trouble(error);
        told = true;
        this.#line.doubt();
        await this.#ports.clock.sleep(troublePauseMs, this.#authority.signal);
      }
    }
  }

  /** Whether that was the last. */
  async #round(): Promise<boolean> {
    if (this.#line.doubts > 0) await this.#lineUp();
    this.#begin();
    if (this.#sessions.parked >= parkedMost) {
      await this.#stirred();
      return false;
    }
    const fetched = await this.#ports.jobs.next(this.#waitMs());
    if (fetched) {
      this.#line.took(fetched.queuedId);
      await this.#admit(fetched);
    } else if (await this.#idleIsOver()) return true;
    else await this.#lookForStrangers();
    return false;
  }

  /** A job that somebody took and nobody runs. One that is before another is found when that begins; this finds the last. */
  async #lookForStrangers(): Promise<void> {
    const { clock, jobs } = this.#ports;
    if (clock.now() - this.#lookedMs < this.#options.leaseMs) return;
    this.#lookedMs = clock.now();
    if ((await jobs.active()).some(({ queuedId }) => !this.#line.has(queuedId))) this.#line.doubt();
  }

  /** Until something is to be done without a job: coming round within a lease, or giving up an idle sandbox. */
  #waitMs(): number {
    const { leaseMs, idleMs } = this.#options;
    const { idleSinceMs } = this;
    if (idleSinceMs === undefined || idleMs === 0) return leaseMs;
    return Math.min(leaseMs, Math.max(0, idleSinceMs + idleMs - this.#ports.clock.now()));
  }

  async #idleIsOver(): Promise<boolean> {
    const { idleSinceMs } = this;
    const { idleMs, maxAgeMs } = this.#options;
    const now = this.#ports.clock.now();
    const idle = idleSinceMs !== undefined && idleMs > 0 && now - idleSinceMs >= idleMs;
    const old = idleSinceMs !== undefined && maxAgeMs > 0 && now - this.#sinceMs >= maxAgeMs;
    if ((!idle && !old) || this.#completing.size > 0) return false;
    const result = await this.#ports.lease.release({ onlyIfEmpty: true });
    if (result === "lost") throw this.#authority.lose("the lease was taken over");
    // By a job that came, or by one that nobody knows of.
    if (result === "kept") this.#line.doubt();
    return result === "released";
  }

  async #handBack(): Promise<TenancyEnd> {
    while (this.#runs.size + this.#completing.size > 0 || this.#adopting) {
      await this.#stirred();
      this.#authority.round();
      this.#authority.signal.throwIfAborted();
    }
    // What was taken and has not begun stays so: the next holder lines it up again.
    this.#authority.signal.throwIfAborted();
    const empty = await this.#release({ onlyIfEmpty: true });
    if (empty === "released") return "released";
    if (empty === "kept" && (await this.#release({ onlyIfEmpty: false })) === "released") {
      return this.#noSandbox ? "no-sandbox" : "handed-back";
    }
    return "fenced";
  }

  /** Tries until Redis has answered, or we may no longer act: it may refuse writes for a while. */
  #release(options: { readonly onlyIfEmpty: boolean }): Promise<"released" | "kept" | "lost"> {
    return this.#authority.publish(() => {
      this.#authority.round();
      return this.#ports.lease.release(options);
    });
  }

  /** Puts a job in its session's line. */
  async #admit(fetched: FetchedJob): Promise<void> {
    const job = await this.#read(fetched);
    if (job) this.#sessions.add({ fetched, job });
  }

  /** One that cannot be read ends here and blocks nobody. */
  async #read(fetched: FetchedJob): Promise<Job | undefined> {
    let data: unknown;
    try {
      data = await fetched.load();
    } catch (error) {
      if (!isFault(error) || mayPass(error)) throw error;
      await this.#unreadable(fetched, error);
      return undefined;
    }
    const parsed = jobSchema.safeParse(data);
    if (parsed.success) return parsed.data;
    const problems = problemsOf(parsed.error).join("; ");
    await this.#refuse(fetched, data, "invalid-job", `invalid job: ${problems}`);
    return undefined;
  }

  /** Its request is gone: with its end, if that was told and only its entry is left. */
  async #unreadable(fetched: FetchedJob, error: Fault): Promise<void> {
    const progress = await this.#ports.events.progress(fetched.id, fetched.attempt);
    if (progress.state === "finished") await this.#endings.told(fetched, progress.result);
    if (progress.state === "finished" || progress.state === "retried") this.#complete(fetched);
    else await this.#refuse(fetched, undefined, error.code, error.message);
  }

  async #refuse(fetched: FetchedJob, data: unknown, code: string, message: string): Promise<void> {
    const result = bareResult({ kind: "refused", code, message: message.slice(0, 2_000) });
    await this.#endings.refuse(fetched, data, result);
    this.#complete(fetched);
  }

  #begin(): void {
    if (this.#yielding || this.#line.doubts > 0) return;
    for (let next = this.#sessions.take(); next !== undefined; next = this.#sessions.take()) {
      const admitted = next;
      this.#track(admitted, (run) =>
        this.#execute(admitted, run).finally(() => this.#sessions.done(admitted)),
      );
    }
  }

  #track({ fetched }: Admitted, work: (run: Run) => Promise<void>, isBegun = false): void {
    const { promise: end, resolve } = Promise.withResolvers<void>();
    const run: Run = { jobId: fetched.id, abort: new AbortController(), end, isBegun };
    this.#runs.set(fetched.queuedId, run);
    void work(run)
      .catch((error: unknown) => {
        if (this.#authority.signal.aborted) return;
        this.#trouble(error);
        this.#lookAgain();
      })
      .finally(() => {
        this.#runs.delete(fetched.queuedId);
        this.#idleSinceMs = this.#ports.clock.now();
        if (!this.#authority.signal.aborted) this.#begin();
        this.#stir();
        resolve();
      });
  }

  /** The queue may not be as we think. */
  #lookAgain(): void {
    this.#line.doubt();
    this.#stir();
    void this.#ports.jobs.wake().catch(() => {});
  }

  async #execute(admitted: Admitted, run: Run): Promise<void> {
    const { fetched } = admitted;
    const attempted = await attempt(
      {
        ports: this.#ports,
        authority: this.#authority,
        before: (queuedId) => this.#line.before(queuedId),
        onTrouble: (error) => this.#trouble(error),
      },
      admitted,
      run,
    );
    switch (attempted.next) {
      case "end":
        return await this.#finish(admitted, attempted.result, attempted.endedAs);
      case "complete":
        return this.#complete(fetched);
      case "look-again":
        return this.#lookAgain();
      case "untouched":
        return await this.#untouched(admitted);
      case "no-sandbox":
        return await this.#noSandboxFor(admitted, attempted.error);
      case "leave":
        return;
      default:
        return assertNever(attempted);
    }
  }

  async #mayStartElsewhere(error: Fault): Promise<boolean> {
    if (!isHostFault(error)) return false;
    // While Redis does not say, the job is not refused.
    const answer = await this.#ports.placement.startFailed().catch(() => "elsewhere" as const);
    return answer === "elsewhere";
  }

  /** It begins again, unless the sandbox goes on refusing it although it hears of us. */
  async #untouched(admitted: Admitted): Promise<void> {
    const { queuedId } = admitted.fetched;
    const times = (this.#untouchedTimes.get(queuedId) ?? 0) + 1;
    this.#untouchedTimes.set(queuedId, times);
    if (times < untouchedMost) return this.#lookAgain();
    const message = "the sandbox went on refusing it, as if its worker's lease were over";
    await this.#finish(admitted, bareResult({ kind: "lost", message }));
  }

  async #noSandboxFor(admitted: Admitted, error: Fault): Promise<void> {
    if ((await this.#mayStartElsewhere(error)) || (error.retry && this.#options.onNoSandbox === "wait")) {
      this.#noSandbox = true;
      this.#trouble(error);
      this.yield();
      return;
    }
    // No sandbox means no execution: the job is refused with the reason, other tenants are not touched.
    const result = bareResult({ kind: "refused", code: error.code, message: error.message });
    await this.#finish(admitted, result);
  }

  async #finish(admitted: Admitted, result: JobResult, endedAs?: Outcome): Promise<void> {
    const { clock, report } = this.#ports;
    const { fetched, job } = admitted;
    const endedMs = clock.now();
    const { retriedInMs: inMs, hasLeft } = await this.#endings.end(fetched.id, job, result, endedAs);
    if (hasLeft) this.#line.left(fetched.queuedId);
    else this.#complete(fetched);
    this.#untouchedTimes.delete(fetched.queuedId);
    const outcome = inMs === undefined ? result.outcome : (endedAs ?? result.outcome);
    const { epoch } = this.#options;
    const record = attemptRecord(admitted, { key: this.key, epoch, outcome, endedMs, clock });
    report(
      inMs === undefined ? { event: "job.finished", ...record } : { event: "job.retrying", inMs, ...record },
    );
  }

  /** Its end is told, so its session goes on meanwhile. */
  #complete(fetched: FetchedJob): void {
    const completing = this.#authority
      .whileOurs(fetched.complete())
      .then(
        () => this.#line.left(fetched.queuedId),
        // Or only the answer was lost. Whoever looks sees that its end is told.
        () => this.#lookAgain(),
      )
      .finally(() => {
        this.#completing.delete(fetched.queuedId);
        this.#stir();
      });
    this.#completing.set(fetched.queuedId, completing);
  }

  #lost(why: string): void {
    this.#ports.report({ event: "tenancy.fenced", key: this.key, epoch: this.#options.epoch, why });
    this.#stir();
    // One that still waits for a job would take it from whoever holds the sandbox next.
    void this.#ports.jobs.close().catch(() => {});
  }

  #trouble(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#lastTrouble = message;
    this.#ports.report({ event: "tenancy.trouble", key: this.key, message });
  }

  #stir(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }

  /** Something changed, or a while has passed. */
  async #stirred(): Promise<void> {
    const { clock } = this.#ports;
    const woken = new AbortController();
    const signal = AbortSignal.any([woken.signal, this.#authority.signal]);
    await Promise.race([this.#wake.promise, clock.sleep(roundMs, signal).catch(() => {})]);
    woken.abort("woken");
  }
}
