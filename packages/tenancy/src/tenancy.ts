import type { SandboxKey } from "@berth/protocol";
import { Adoption } from "./adoption.ts";
import type { Admitted } from "./attempt-record.ts";
import { Authority } from "./authority.ts";
import { BeginAtTake } from "./begin-at-take.ts";
import { Beginnings } from "./beginnings.ts";
import { ChangeSignal } from "./change-signal.ts";
import { Closing } from "./closing.ts";
import { Endings } from "./endings.ts";
import { besideMs, fetchBeside } from "./fetch-beside.ts";
import { type IdleLimits, isIdleTooLong, waitForJobMs } from "./idle-rule.ts";
import { Intake } from "./intake.ts";
import { Line } from "./line.ts";
import { admit, type LineUp, lineUp } from "./line-up.ts";
import { Phase, type YieldReason } from "./phase.ts";
import { Runs } from "./runs.ts";
import { Sessions } from "./sessions.ts";
import type { TenancyBounds, TenancyEnd, TenancyOptions } from "./tenancy-options.ts";
import type { FetchedJob, TenancyPorts } from "./tenancy-ports.ts";
import { UnknownJobCheck } from "./unknown-job-check.ts";

/** Pause after the job source failed, as it does while Redis is away. */
const troublePauseMs = 250;
/** Waiting for jobs to end counts as progress. It is reported this often. */
const roundMs = 1_000;

/**
 * The period in which this worker holds one sandbox.
 *
 *   holding ──idle for long, and the queue is empty──▶ over (released)
 *     │  └──asked, no sandbox here, or the worker stops──▶ yielding ──what runs has ended──▶ over (released, handed back)
 *     └──lease lost, or not renewed in time, also while yielding──▶ over (fenced)
 *
 * While it holds the sandbox and its view of the queue is marked stale (`Line`), as at its start, it first handles what other holders
 * left; nothing begins until then. Promises: a job leaves its queue only with or after its terminal record; nothing is published
 * with an epoch that no longer holds; a job that began and whose end is unknown is not begun again unless it is safe to repeat.
 * When it cannot renew in time it stops by itself, without reaching any other process. The link detects a container that does not answer
 * and removes it; its commands end as lost, and the next job gets a fresh container.
 */
export class Tenancy {
  readonly #options: TenancyOptions;
  readonly #ports: TenancyPorts;
  readonly #sessions: Sessions<Admitted>;
  readonly #authority: Authority;
  readonly #adoption: Adoption;
  readonly #line = new Line();
  readonly #beginnings: Beginnings;
  readonly #phase = new Phase(() => this.#changes.notify());
  readonly #changes: ChangeSignal;
  readonly #endings: Endings;
  readonly #runs: Runs;
  readonly #closing: Closing;
  readonly #beginAtTake: BeginAtTake;
  readonly #lineUp: LineUp;
  readonly #unknownJobs: UnknownJobCheck;
  readonly #sinceMs: number;
  #idleSinceMs: number;
  #lastTrouble: string | undefined;

  constructor(options: TenancyOptions, ports: TenancyPorts) {
    const { key, epoch, leaseMs, takenAtMs, onNoSandbox } = options;
    const onTrouble = (error: unknown) => this.#trouble(error);
    this.#options = options;
    this.#ports = ports;
    this.#changes = new ChangeSignal(ports.clock);
    this.#beginnings = new Beginnings(ports);
    this.#sessions = new Sessions(
      () => this.#bounds.parallel,
      ({ job }) => job.session,
    );
    this.#sinceMs = ports.clock.now();
    this.#idleSinceMs = this.#sinceMs;
    this.#unknownJobs = new UnknownJobCheck({ leaseMs, ports, line: this.#line });
    this.#authority = new Authority({
      ...{ leaseMs, takenAtMs, clock: ports.clock, lease: ports.lease },
      onLost: (why) => this.#lost(why),
      onPaused: () => this.yield(),
      onTrouble,
    });
    const authority = this.#authority;
    this.#endings = new Endings({ key, ports, publish: (send) => authority.publish(send) });
    const beginnings = this.#beginnings;
    const shared = { line: this.#line, sessions: this.#sessions, endings: this.#endings, beginnings };
    this.#runs = new Runs({
      ...{ ...shared, key, epoch, onNoSandbox, ports, authority, onTrouble },
      mayBegin: () => this.#mayBegin,
      onEnded: () => this.#becameIdle(),
      onStale: () => this.#lookAgain(),
      onNoSandboxHere: (error) => {
        this.#trouble(error);
        this.#yield("no-sandbox");
      },
    });
    authority.signal.addEventListener("abort", () => this.#runs.stopAll("fenced"), { once: true });
    this.#closing = new Closing({ ...options, sandbox: ports.sandbox, phase: this.#phase, onTrouble });
    const complete = (fetched: FetchedJob) => this.#runs.complete(fetched);
    const intake = new Intake({ events: ports.events, endings: this.#endings, complete });
    this.#beginAtTake = new BeginAtTake({
      ...{ ports, beginnings, runs: this.#runs, read: (fetched) => intake.read(fetched) },
      isFree: () => this.#mayBegin && this.#runs.isEmpty && this.idleSinceMs !== undefined,
      cancel: (jobId) => this.cancel(jobId),
      onStale: () => this.#line.markStale(),
    });
    this.#lineUp = {
      ...{ ...shared, key, ports, intake, runs: this.#runs, onStep: () => authority.round() },
    };
    this.#adoption = new Adoption({
      ...{ ports, authority, onTrouble, earlierOverMs: this.#sinceMs + leaseMs },
      onDone: () => this.#becameIdle(),
    });
  }

  get key(): SandboxKey {
    return this.#options.key;
  }

  /** Since when nothing runs or waits here; undefined while something does. */
  get idleSinceMs(): number | undefined {
    const busy = this.#sessions.running + this.#sessions.parked > 0 || this.#adoption.isOpening;
    return busy ? undefined : this.#idleSinceMs;
  }

  get lastTrouble(): string | undefined {
    return this.#lastTrouble;
  }

  get yielding(): boolean {
    return this.#phase.name !== "holding";
  }

  get #mayBegin(): boolean {
    return this.#phase.name === "holding" && this.#line.staleMarks === 0;
  }

  /** The ids of the jobs that run or wait here. */
  get jobIds(): string[] {
    return [...this.#runs.jobIds, ...this.#sessions.waiting.map(({ fetched }) => fetched.id)];
  }

  /** Takes no more jobs, finishes those that run, and gives the sandbox up. */
  yield(): void {
    this.#yield("asked");
  }

  /** As `yield`, because the worker stops: the container may be left for its next process. */
  stop(): void {
    this.#yield("worker-stops");
  }

  /** Ends the running jobs. Those that are safe to repeat are left to the next holder, the others end as cancelled. */
  abandon(): void {
    this.stop();
    this.#runs.stopAll("worker-stops");
  }

  /** Ends a job that runs or waits here. One still in its queue ends when its turn comes. */
  cancel(jobId: string): void {
    if (this.#runs.cancel(jobId)) return;
    const parked = this.#sessions.remove(({ fetched }) => fetched.id === jobId);
    if (parked) this.#runs.endParked(parked);
    else this.#beginAtTake.cancelUnknown(jobId);
  }

  /** Opens the sandbox that an earlier process of the worker left. Call it once. Does not throw. */
  adopt(): Promise<void> {
    return this.#adoption.start();
  }

  /** Runs the tenancy from the taken lease to its end. Does not throw. */
  async run(): Promise<TenancyEnd> {
    const renewing = this.#authority.keep();
    let end: TenancyEnd = "fenced";
    try {
      end = await this.#authority.whileOurs(this.#work());
    } catch (error) {
      if (!this.#authority.signal.aborted) this.#trouble(error);
      end = this.#authority.signal.aborted ? "fenced" : await this.#handBack().catch(() => "fenced" as const);
    } finally {
      this.#phase.end();
      this.#authority.close();
      await Promise.all([renewing, this.#runs.ended()]);
      await this.#ports.jobs.close().catch(() => {});
      await this.#closing.close({ isFenced: end === "fenced" });
      // If Redis carries out a take or a renewal late, as after an outage, the lease would have no holder. This does not wait for the answer.
      const release = () => this.#ports.lease.release({ onlyIfEmpty: false }).catch(() => {});
      if (end === "fenced") void this.#beginnings.takeAllBackWithin(this.#options.leaseMs).then(release);
    }
    return end;
  }

  #yield(because: YieldReason): void {
    this.#phase.yield(because);
    void this.#ports.jobs.wake().catch(() => {});
  }

  async #work(): Promise<TenancyEnd> {
    let isReported = false;
    for (;;) {
      this.#authority.signal.throwIfAborted();
      this.#authority.round();
      if (this.#phase.name === "yielding") return await this.#handBack();
      try {
        if (await this.#round()) return "released";
        isReported = false;
      } catch (error) {
        this.#authority.signal.throwIfAborted();
        if (!isReported) this.#trouble(error);
        isReported = true;
        this.#line.markStale();
        await this.#ports.clock.sleep(troublePauseMs, this.#authority.signal);
      }
    }
  }

  /** Returns whether that was the last round. */
  async #round(): Promise<boolean> {
    if (this.#line.staleMarks > 0) await lineUp(this.#lineUp);
    this.#runs.begin();
    const { jobs, clock } = this.#ports;
    const isFull = this.#sessions.parked >= this.#options.parkedMost;
    const waitMs = waitForJobMs(this.#limits, this.idleSinceMs, clock.now());
    const fetched = isFull ? await fetchBeside(jobs, this.#sessions) : await this.#beginAtTake.next(waitMs);
    if (fetched) {
      this.#line.took(fetched.queuedId);
      if (fetched.isBegun) await this.#beginAtTake.begin(fetched);
      else await admit(this.#lineUp, fetched);
    } else if (isFull) await this.#changes.wait(besideMs, this.#authority.signal);
    else if (await this.#idleIsOver()) return true;
    else await this.#unknownJobs.run();
    return false;
  }

  async #idleIsOver(): Promise<boolean> {
    const isOver = isIdleTooLong(this.#limits, this.idleSinceMs, this.#sinceMs, this.#ports.clock.now());
    if (isOver && this.#closing.isBeforeRelease) this.#phase.yield("asked");
    if (!isOver || this.#closing.isBeforeRelease || this.#runs.isCompleting) return false;
    const result = await this.#authority.release({ onlyIfEmpty: true });
    if (result === "lost") throw this.#authority.lose("the lease was taken over");
    // A job came, or one is taken that this holder does not know.
    if (result === "kept") this.#line.markStale();
    return result === "released";
  }

  async #handBack(): Promise<TenancyEnd> {
    while (!this.#runs.isEmpty || this.#adoption.isOpening) {
      await this.#changes.wait(roundMs, this.#authority.signal);
      this.#authority.round();
      this.#authority.signal.throwIfAborted();
    }
    // Jobs that were taken and have not begun stay taken: the next holder lines them up again.
    this.#authority.signal.throwIfAborted();
    await this.#authority.publish(() => this.#beginnings.takeAllBack());
    if (this.#closing.isBeforeRelease) await this.#closing.close({ isFenced: false });
    const empty = await this.#release({ onlyIfEmpty: true });
    if (empty === "released") return "released";
    if (empty === "kept" && (await this.#release({ onlyIfEmpty: false })) === "released") {
      return this.#phase.because === "no-sandbox" ? "no-sandbox" : "handed-back";
    }
    return "fenced";
  }

  /** Retries until Redis has answered or the lease is lost: Redis may refuse writes for a while. */
  #release(options: { readonly onlyIfEmpty: boolean }): Promise<"released" | "kept" | "lost"> {
    return this.#authority.publish(() => {
      this.#authority.round();
      return this.#authority.release(options);
    });
  }

  get #limits(): IdleLimits {
    return { ...this.#bounds, leaseMs: this.#options.leaseMs };
  }

  get #bounds(): TenancyBounds {
    return this.#ports.sandbox.bounds ?? this.#options;
  }

  #becameIdle(): void {
    this.#idleSinceMs = this.#ports.clock.now();
    this.#changes.notify();
  }

  #lookAgain(): void {
    this.#line.markStale();
    this.#changes.notify();
    void this.#ports.jobs.wake().catch(() => {});
  }

  #lost(why: string): void {
    this.#ports.report({ event: "tenancy.fenced", key: this.key, epoch: this.#options.epoch, why });
    this.#changes.notify();
    // A call that still waits for a job would take it from the next holder of the sandbox.
    void this.#ports.jobs.close().catch(() => {});
  }

  #trouble(error: unknown): void {
    this.#lastTrouble = error instanceof Error ? error.message : String(error);
    this.#ports.report({ event: "tenancy.trouble", key: this.key, message: this.#lastTrouble });
  }
}
