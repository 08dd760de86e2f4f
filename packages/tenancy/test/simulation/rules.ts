import type { SimEvent } from "./events-model.ts";
import { type Entry, entryId, type SimJob } from "./sim-job.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Trace } from "./trace.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** A command inside a sandbox, from its start to its end. */
export interface Command {
  readonly job: SimJob;
  readonly attempt: number;
  readonly index: number;
  readonly epoch: number;
  readonly worker: string;
  readonly process: SimProcess;
}

export interface Violation {
  readonly rule: string;
  readonly detail: string;
  /** What to look for in the trace. */
  readonly about: readonly string[];
}

export interface RulesOptions {
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly leaseMs: number;
  /** Jobs of one sandbox, and of one worker, that may run at once. */
  readonly parallel: number;
  readonly turns: number;
}

/** A frame is on its way to init for this long: a command may start or end so much after its worker was told to stop. */
const onTheWayMs = 5;
/** A holder stops this share of a lease before its deadline. */
const marginShare = 0.2;

/**
 * What must hold, looked at whenever something happens.
 *
 * A holder whose timers run has ended its commands before its lease ends: that is a rule. One that is frozen or dead cannot; its
 * commands are ended by init, which waits for a sign of its worker for a lease's length. The last sign may have come as late as the holder
 * may act, so on another host a command can still *run* for most of a lease after the next epoch began (`longestOutlivingLeases`). That
 * none *starts* then, is a rule again.
 */
export class Rules {
  readonly #options: RulesOptions;
  /** By session, in the order in which they were accepted. */
  readonly #lines = new Map<string, Entry[]>();
  readonly #epochs = new Map<string, { epoch: number; tookMs: number; worker: string }>();
  readonly #deadlines = new Map<string, number>();
  readonly #over = new Set<string>();
  readonly #finished = new Set<string>();
  readonly #cancelled = new Set<string>();
  readonly #overtaken = new Set<string>();
  readonly #starts = new Map<string, number>();
  readonly #running = new Set<Command>();
  readonly jobs = new Map<string, SimJob>();
  /** Job ids, in the order in which their commands started. */
  readonly started: string[] = [];
  violation: Violation | undefined;
  /** The longest that a command outlived its epoch, in leases. */
  longestOutlivingLeases = 0;

  constructor(options: RulesOptions) {
    this.#options = options;
  }

  get finished(): number {
    return this.#finished.size;
  }

  isFinished(jobId: string): boolean {
    return this.#finished.has(jobId);
  }

  broken(rule: string, detail: string, about: readonly string[]): void {
    this.#options.trace.note("RULE", rule, detail);
    this.violation ??= { rule, detail, about };
  }

  accepted(entry: Entry): void {
    const { job } = entry;
    this.jobs.set(job.id, job);
    this.#options.trace.note("client", "accepted", `${entryId(entry)} ${job.key}/${job.session}`);
    this.#line(job).push(entry);
  }

  took(key: string, epoch: number, worker: string): void {
    const { time, trace } = this.#options;
    trace.note("redis", "took", `${key} epoch ${epoch} by ${worker}`);
    this.#epochs.set(key, { epoch, tookMs: time.nowMs, worker });
  }

  /** Until when an epoch's lease lasts, by Redis. */
  lasts(key: string, epoch: number, deadlineMs: number): void {
    this.#deadlines.set(`${key} ${epoch}`, deadlineMs);
  }

  released(key: string, epoch: number): void {
    this.#options.trace.note("redis", "released", `${key} epoch ${epoch}`);
    for (const { job, epoch: of } of this.#running)
      if (job.key === key && of === epoch)
        this.broken("nothing runs when a lease is given up", `${job.id} of epoch ${of}`, [job.id, key]);
  }

  published(key: string, epoch: number, jobId: string, event: SimEvent): void {
    const { trace } = this.#options;
    const shown = event.type === "finished" ? `finished:${event.result.outcome.kind}` : event.type;
    trace.note("redis", "said", `${shown} ${jobId} ${key} epoch ${epoch}`);
    if (this.#finished.has(jobId))
      this.broken("nothing follows a terminal record", `${event.type} of ${jobId}`, [jobId, key]);
    if (epoch !== this.#epochs.get(key)?.epoch)
      this.broken("only the epoch that holds the sandbox speaks", `${event.type} of ${jobId}`, [jobId, key]);
    if (event.type === "finished") this.#finished.add(jobId);
    if (event.type === "retrying") this.#over.add(`${jobId}~${event.attempt}`);
  }

  completed(key: string, { job, attempt }: Entry): void {
    this.#options.trace.note("redis", "completed", `${entryId({ job, attempt })} ${key}`);
    if (!this.#isOver({ job, attempt }))
      this.broken("a job is completed only after its end was told", `${job.id}~${attempt}`, [job.id, key]);
  }

  cancelled(jobId: string): void {
    this.#cancelled.add(jobId);
  }

  queued(what: string, id: string, token: string): void {
    this.#options.trace.note("redis", what, `${id} by ${token}`);
  }

  starts(command: Command): void {
    const { job, attempt, index, epoch, worker } = command;
    const { time, trace, parallel, turns } = this.#options;
    const name = `${entryId({ job, attempt })}/${index}`;
    trace.note(worker, "starts", `${name} ${job.key} epoch ${epoch}`);
    const about = [job.id, job.key, worker];
    this.started.push(job.id);
    const startsOf = (this.#starts.get(name) ?? 0) + 1;
    this.#starts.set(name, startsOf);
    if (startsOf > 1 && !job.repeatable)
      this.broken("a command that is not safe to repeat is never started twice", name, about);
    const current = this.#epochs.get(job.key);
    // Another life of the same worker is on the same host: there init refuses what is not the highest epoch it has seen.
    const elsewhere = current !== undefined && current.epoch > epoch && current.worker !== worker;
    if (elsewhere && time.nowMs - current.tookMs > onTheWayMs)
      this.broken(
        "no command of an old epoch starts once another took the lease",
        `${name} of epoch ${epoch}, ${time.nowMs - current.tookMs} ms after epoch ${current.epoch}`,
        about,
      );
    if (this.#finished.has(job.id)) this.broken("no command starts after its job's end", name, about);
    if (this.#overtaken.has(entryId(command)))
      this.broken("jobs of a session run in order", `${name} after a later one`, about);
    for (const earlier of this.#unfinishedBefore(command)) {
      // Whoever cancels a job does not wait for it to be told; it must never run then.
      if (this.#cancelled.has(earlier.job.id)) this.#overtaken.add(entryId(earlier));
      else
        this.broken("jobs of a session run in order", `${name} before ${entryId(earlier)}`, [
          ...about,
          earlier.job.id,
        ]);
    }
    this.#running.add(command);
    const beside = [...this.#running].filter((other) => other.process === command.process);
    const here = beside.filter((other) => other.job.key === job.key && other.epoch === epoch);
    if (here.length > parallel)
      this.broken("a tenancy runs no more at once than it may", `${here.length}`, about);
    if (beside.length > turns)
      this.broken("a worker runs no more at once than it may", `${beside.length}`, about);
    if (here.some((other) => other !== command && other.job.session === job.session))
      this.broken("one job of a session at a time", name, about);
  }

  ends(command: Command, how: string): void {
    const { job, attempt, index, epoch, worker } = command;
    const { time, trace, leaseMs } = this.#options;
    this.#running.delete(command);
    trace.note(worker, "ends", `${entryId({ job, attempt })}/${index} ${how}`);
    this.#checkMargin(command);
    const current = this.#epochs.get(job.key);
    if (!current || current.epoch === epoch) return;
    const outlivedMs = time.nowMs - current.tookMs;
    this.longestOutlivingLeases = Math.max(this.longestOutlivingLeases, outlivedMs / leaseMs);
    if (current.epoch === epoch + 1 && outlivedMs > leaseMs * 1.05 + 100)
      this.broken("no command outlives its epoch by more than a lease", `${job.id}: ${outlivedMs} ms`, [
        job.id,
        job.key,
        worker,
      ]);
  }

  /** A holder whose timers run ends its commands before its lease does. */
  #checkMargin({ job, epoch, worker, process }: Command): void {
    const { time, leaseMs } = this.#options;
    const deadlineMs = this.#deadlines.get(`${job.key} ${epoch}`) ?? 0;
    const sinceMs = process.runsSinceMs;
    if (sinceMs === undefined || sinceMs > deadlineMs - leaseMs * marginShare) return;
    if (time.nowMs > deadlineMs + onTheWayMs)
      this.broken("nothing runs past its lease's deadline", `${job.id}: ${time.nowMs - deadlineMs} ms`, [
        ...[job.id, job.key, worker],
      ]);
  }

  get running(): number {
    return this.#running.size;
  }

  #isOver({ job, attempt }: Entry): boolean {
    return this.#finished.has(job.id) || this.#over.has(`${job.id}~${attempt}`);
  }

  #unfinishedBefore({ job, attempt }: Command): Entry[] {
    const entries = this.#line(job);
    const own = entries.findIndex((other) => other.job === job && other.attempt === attempt);
    return entries.slice(0, own).filter((entry) => !this.#isOver(entry));
  }

  #line({ key, session }: SimJob): Entry[] {
    const name = `${key}/${session}`;
    const line = this.#lines.get(name) ?? [];
    this.#lines.set(name, line);
    return line;
  }
}
