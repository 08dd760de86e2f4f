import {
  isFault,
  isRepeatable,
  type Job,
  type JobResult,
  job as jobSchema,
  type Outcome,
  problemsOf,
  type SandboxKey,
} from "@berth/protocol";
import { settleDeadEpoch } from "./dead-epoch.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { OutputBatch } from "./output-batch.ts";
import { Sessions } from "./sessions.ts";
import type { FetchedJob, OpenSandbox, TenancyPorts } from "./tenancy-ports.ts";

export interface TenancyOptions {
  readonly key: SandboxKey;
  readonly epoch: number;
  readonly leaseMs: number;
  /** Jobs of different sessions that run at once. */
  readonly parallel: number;
  /** Without work for this long, the sandbox is given up; 0: never. */
  readonly idleMs: number;
  /** Held for this long, it is given up as soon as it has no work; 0: never. */
  readonly maxAgeMs: number;
  /** What becomes of jobs when no sandbox can be had here, for reasons that may pass. */
  readonly onNoSandbox: "wait" | "refuse";
  /** Whether the container goes when the tenancy ends by order of its worker. */
  readonly removeOnStop: boolean;
}

/**
 * How a tenancy ended. `handed-back`: its queue still has jobs, and the sandbox should be offered again. `no-sandbox`: the same,
 * and no sandbox could be had here.
 */
export type TenancyEnd = "released" | "handed-back" | "no-sandbox" | "fenced";

const stoppingReason = "its worker is stopping";

interface Admitted {
  readonly fetched: FetchedJob;
  readonly job: Job;
}

/** Fetched ahead, so that a session with many jobs does not hide the others. */
const parkedMost = 128;
/** Pause after the job source failed, as it does while Redis is away. */
const troublePauseMs = 250;
/** Waiting for jobs to end is progress too, told this often. */
const roundMs = 1_000;

/**
 * The stretch of time in which this worker holds one sandbox.
 *
 *   opening ──▶ settling ──▶ working ◀──▶ idle ──queue empty──▶ released
 *                              │  └──asked to yield──▶ yielding ──jobs left──▶ handed back
 *                              └──lease lost, or not renewed in time──▶ fenced
 *
 * Promises: a job is completed in its queue only after its terminal record is published; nothing is published with an epoch
 * that no longer holds; a job that began and whose end nobody knows is not begun again unless it is safe to repeat. When it
 * cannot renew in time it stops by itself, without asking anybody. That the container answers is its link's to see: one that does
 * not is removed, what ran in it ends as lost, and the next job gets a fresh one.
 */
export class Tenancy {
  readonly #options: TenancyOptions;
  readonly #ports: TenancyPorts;
  readonly #sessions: Sessions<Admitted>;
  readonly #fence = new AbortController();
  readonly #runs = new Map<string, { readonly abort: AbortController; readonly end: Promise<void> }>();
  readonly #completing = new Set<Promise<void>>();
  readonly #keeper: LeaseKeeper;
  readonly #sinceMs: number;
  /** Jobs that go back in line when the sandbox is handed back. */
  readonly #returned: FetchedJob[] = [];
  #idleSinceMs: number;
  #yielding = false;
  #stopping = false;
  #noSandbox = false;
  #lastTrouble: string | undefined;
  #wake = Promise.withResolvers<void>();

  constructor(options: TenancyOptions, ports: TenancyPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#sessions = new Sessions(options.parallel, ({ job }) => job.session);
    this.#sinceMs = ports.clock.now();
    this.#idleSinceMs = this.#sinceMs;
    this.#keeper = new LeaseKeeper({
      leaseMs: options.leaseMs,
      clock: ports.clock,
      lease: ports.lease,
      onLost: (why) => void this.#fenced(why),
      onPaused: () => this.yield(),
    });
  }

  get key(): SandboxKey {
    return this.#options.key;
  }

  /** Since when nothing runs or waits here, or undefined while something does. */
  get idleSinceMs(): number | undefined {
    return this.#sessions.running + this.#sessions.parked === 0 ? this.#idleSinceMs : undefined;
  }

  get lastTrouble(): string | undefined {
    return this.#lastTrouble;
  }

  get yielding(): boolean {
    return this.#yielding;
  }

  /** Of the jobs that run or wait here. */
  get jobIds(): string[] {
    return [...this.#runs.keys(), ...this.#sessions.waiting.map(({ fetched }) => fetched.id)];
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
    const running = this.#runs.get(jobId);
    if (running) {
      running.abort.abort("by request");
      return;
    }
    const parked = this.#sessions.remove(({ fetched }) => fetched.id === jobId);
    if (!parked) return;
    const result = failed({ kind: "cancelled", reason: "by request, before it began" });
    this.#track(parked.fetched.id, new AbortController(), this.#finish(parked, result));
  }

  /** Opens the sandbox before any job asks: what an earlier life of the worker left is adopted while it lives. */
  async adopt(profile?: string): Promise<void> {
    const opening = this.#ports.sandbox.open(profile, this.#fence.signal);
    await opening.then(
      (opened) => opened.done(),
      (error) => this.#trouble(error),
    );
  }

  /** From the taken lease to its end. Does not throw. */
  async run(): Promise<TenancyEnd> {
    const renewing = this.#keeper.keep(this.#fence.signal);
    let end: TenancyEnd = "fenced";
    try {
      await this.#settle();
      end = await this.#work();
    } catch (error) {
      if (!this.#fence.signal.aborted) this.#trouble(error);
      end = this.#fence.signal.aborted ? "fenced" : await this.#handBack().catch(() => "fenced" as const);
    } finally {
      this.#fence.abort("over");
      await Promise.all([renewing, ...[...this.#runs.values()].map(({ end: run }) => run)]);
      await Promise.all(this.#completing);
      await this.#ports.jobs.close().catch(() => {});
      const remove = !this.#stopping || this.#options.removeOnStop || end === "fenced";
      await this.#ports.sandbox.close({ remove }).catch((error) => this.#trouble(error));
    }
    return end;
  }

  async #settle(): Promise<void> {
    const { jobs, events, report } = this.#ports;
    const message = "its worker died while it ran; it may have run in part and was not run again";
    const counts = await settleDeadEpoch({
      jobs,
      events,
      onLost: (fetched, job) => this.#finish({ fetched, job }, failed({ kind: "lost", message })),
      onStep: () => this.#keeper.round(),
    });
    if (counts.lost + counts.back + counts.done > 0)
      report({ event: "tenancy.settled", key: this.key, ...counts });
  }

  async #work(): Promise<TenancyEnd> {
    for (;;) {
      this.#fence.signal.throwIfAborted();
      this.#keeper.round();
      this.#begin();
      if (this.#yielding) return await this.#handBack();
      if (this.#sessions.parked >= parkedMost) {
        await this.#stirred();
        continue;
      }
      const fetched = await this.#fetch();
      if (fetched) await this.#admit(fetched);
      else if (await this.#idleIsOver()) return "released";
    }
  }

  async #fetch(): Promise<FetchedJob | undefined> {
    try {
      return await this.#ports.jobs.next();
    } catch {
      await this.#ports.clock.sleep(troublePauseMs, this.#fence.signal);
      return undefined;
    }
  }

  async #idleIsOver(): Promise<boolean> {
    const { idleSinceMs } = this;
    const { idleMs, maxAgeMs } = this.#options;
    const now = this.#ports.clock.now();
    const idle = idleSinceMs !== undefined && idleMs > 0 && now - idleSinceMs >= idleMs;
    const old = idleSinceMs !== undefined && maxAgeMs > 0 && now - this.#sinceMs >= maxAgeMs;
    if (!idle && !old) return false;
    const result = await this.#ports.lease.release({ onlyIfEmpty: true });
    if (result === "lost") throw this.#fenced("the lease was taken over");
    return result === "released";
  }

  async #handBack(): Promise<TenancyEnd> {
    while (this.#runs.size + this.#completing.size > 0) {
      await this.#stirred();
      this.#keeper.round();
      this.#fence.signal.throwIfAborted();
    }
    // Each goes to the front of the line: those that had begun last, they were before the others.
    for (const { fetched } of this.#sessions.empty().reverse()) await fetched.putBack();
    for (const fetched of this.#returned.splice(0).reverse()) await fetched.putBack();
    this.#fence.signal.throwIfAborted();
    const empty = await this.#ports.lease.release({ onlyIfEmpty: true });
    if (empty === "released") return "released";
    if (empty === "kept" && (await this.#ports.lease.release({ onlyIfEmpty: false })) === "released") {
      return this.#noSandbox ? "no-sandbox" : "handed-back";
    }
    return "fenced";
  }

  /** Checks a job and puts it in its session's line. One that cannot be read ends here and blocks nobody. */
  async #admit(fetched: FetchedJob): Promise<void> {
    let data: unknown;
    try {
      data = await fetched.load();
    } catch (error) {
      if (!isFault(error) || error.retry) throw error;
      return await this.#refuse(fetched, error.code, error.message);
    }
    const parsed = jobSchema.safeParse(data);
    if (parsed.success) {
      this.#sessions.add({ fetched, job: parsed.data });
      return;
    }
    await this.#refuse(fetched, "invalid-job", `invalid job: ${problemsOf(parsed.error).join("; ")}`);
  }

  async #refuse(fetched: FetchedJob, code: string, message: string): Promise<void> {
    const result = failed({ kind: "refused", code, message: message.slice(0, 2_000) });
    await this.#publish(() => this.#ports.events.finished(fetched.id, undefined, result));
    await fetched.complete();
  }

  #begin(): void {
    if (this.#yielding) return;
    for (let next = this.#sessions.take(); next !== undefined; next = this.#sessions.take()) {
      const admitted = next;
      const abort = new AbortController();
      const running = this.#execute(admitted, abort).finally(() => this.#sessions.done(admitted));
      this.#track(admitted.fetched.id, abort, running);
    }
  }

  #track(jobId: string, abort: AbortController, running: Promise<void>): void {
    const end = running
      .catch((error: unknown) => {
        if (!this.#fence.signal.aborted) this.#trouble(error);
      })
      .finally(() => {
        this.#runs.delete(jobId);
        this.#idleSinceMs = this.#ports.clock.now();
        if (!this.#fence.signal.aborted) this.#begin();
        this.#stir();
      });
    this.#runs.set(jobId, { abort, end });
  }

  async #execute(admitted: Admitted, abort: AbortController): Promise<void> {
    const { sandbox, turns, clock } = this.#ports;
    const { job } = admitted;
    if (job.deadlineAtMs !== undefined && clock.wall() > job.deadlineAtMs) {
      const message = "its deadline had passed before it could begin";
      return await this.#finish(admitted, failed({ kind: "refused", code: "deadline", message }));
    }
    const signal = AbortSignal.any([abort.signal, this.#fence.signal]);
    let turnOver: (() => void) | undefined;
    let opened: OpenSandbox | undefined;
    try {
      turnOver = await turns.take(signal);
      // Opened before it is said to begin: what cannot be opened has not begun, and may wait.
      opened = await sandbox.open(job.profile, signal);
      await this.#beginAndRun(admitted, opened, abort.signal);
    } catch (error) {
      if (opened) throw error;
      await this.#notOpened(admitted, abort.signal, error);
    } finally {
      opened?.done();
      turnOver?.();
    }
  }

  async #notOpened(admitted: Admitted, signal: AbortSignal, error: unknown): Promise<void> {
    this.#fence.signal.throwIfAborted();
    if (signal.aborted) return await this.#interrupted(admitted, signal, "before it began");
    if (!isFault(error)) throw error;
    if (error.retry && this.#options.onNoSandbox === "wait") {
      this.#noSandbox = true;
      this.#trouble(error);
      this.yield();
      this.#returned.push(admitted.fetched);
      return;
    }
    // No sandbox means no execution: the job is refused with the reason, other tenants are not touched.
    const result = failed({ kind: "refused", code: error.code, message: error.message });
    await this.#finish(admitted, result);
  }

  async #beginAndRun(admitted: Admitted, opened: OpenSandbox, signal: AbortSignal): Promise<void> {
    const { events, clock } = this.#ports;
    const { fetched, job } = admitted;
    const begun = await this.#publish(() => events.begin(fetched.id, job.attempt));
    if (begun === "finished-before") return await fetched.complete();
    if (begun === "cancelled")
      return await this.#interrupted(admitted, signal, "by request, before it began");
    const begunMs = clock.now();
    const result = await this.#run(admitted, opened, signal);
    const stopped = result.outcome.kind === "cancelled" && signal.reason === stoppingReason;
    if (stopped && isRepeatable(job.request, job.idempotent)) this.#returned.push(fetched);
    else await this.#finish(admitted, result, begunMs);
  }

  /** Ends a job that had not begun, or puts it back when only its worker stops. */
  async #interrupted(admitted: Admitted, signal: AbortSignal, how: string): Promise<void> {
    if (signal.reason === stoppingReason) this.#returned.push(admitted.fetched);
    else await this.#finish(admitted, failed({ kind: "cancelled", reason: how }));
  }

  async #run({ fetched, job }: Admitted, sandbox: OpenSandbox, signal: AbortSignal): Promise<JobResult> {
    const { events, clock } = this.#ports;
    const running = AbortSignal.any([signal, this.#fence.signal]);
    if (job.request.kind === "destroy") {
      await sandbox.destroy(running);
      return { outcome: { kind: "done" }, value: {}, timing: { wallMs: 0, cpuMs: 0 } };
    }
    let parts = 0;
    const batch = new OutputBatch(sandbox.limits.keptBytes, clock, async (pieces) => {
      const part = parts++;
      await this.#publish(() => events.output(fetched.id, part, pieces));
    });
    try {
      return await sandbox.run(job.request, {
        signal: running,
        onOutput: (piece) => batch.add(piece),
        onArtifact: async (artifact) => {
          await batch.flush();
          await this.#publish(() => events.artifact(fetched.id, artifact));
        },
        conversation: { tenant: job.tenant, agent: job.agent, session: job.session, jobId: job.id },
      });
    } catch (error) {
      // No sandbox means no execution: the job is refused with the reason, other tenants are not touched.
      if (!isFault(error)) throw error;
      return failed({ kind: "refused", code: error.code, message: error.message });
    } finally {
      await batch.flush();
    }
  }

  async #finish({ fetched, job }: Admitted, result: JobResult, begun?: number): Promise<void> {
    const { clock, events, report } = this.#ports;
    const ended = clock.now();
    await this.#publish(() => events.finished(fetched.id, job.inbox, result));
    this.#complete(fetched);
    report({
      event: "job.finished",
      key: this.key,
      jobId: fetched.id,
      kind: job.request.kind,
      outcome: result.outcome.kind,
      runMs: begun === undefined ? 0 : ended - begun,
      publishMs: clock.now() - ended,
    });
  }

  /** Its end is told, so its session goes on meanwhile. If it fails, the job stays active and the next tenancy completes it. */
  #complete(fetched: FetchedJob): void {
    const completing = fetched
      .complete()
      .catch((error) => this.#trouble(error))
      .finally(() => {
        this.#completing.delete(completing);
        this.#stir();
      });
    this.#completing.add(completing);
  }

  /** Tries until it is said or we may no longer speak. */
  async #publish<R extends string>(say: () => Promise<R | "fenced">): Promise<Exclude<R, "fenced">> {
    for (;;) {
      this.#fence.signal.throwIfAborted();
      try {
        const said = await say();
        if (said !== "fenced") return said as Exclude<R, "fenced">;
      } catch (error) {
        if (isFault(error) && !error.retry) throw error;
        await this.#ports.clock.sleep(troublePauseMs, this.#fence.signal);
        continue;
      }
      throw this.#fenced("somebody else publishes for the sandbox");
    }
  }

  /** From here on nothing is said or run in the sandbox's name. */
  #fenced(why: string): Error {
    if (!this.#fence.signal.aborted) {
      this.#ports.report({ event: "tenancy.fenced", key: this.key, epoch: this.#options.epoch, why });
      this.#fence.abort(new Error(why));
      this.#stir();
    }
    return new Error(why);
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
    const signal = AbortSignal.any([woken.signal, this.#fence.signal]);
    await Promise.race([this.#wake.promise, clock.sleep(roundMs, signal).catch(() => {})]);
    woken.abort();
  }
}

function failed(outcome: Outcome): JobResult {
  return { outcome, value: {}, timing: { wallMs: 0, cpuMs: 0 } };
}
