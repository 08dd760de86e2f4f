import { HandOverRule } from "./hand-over-rule.ts";
import { Keyspace } from "./keyspace.ts";
import { OrderRule } from "./order-rule.ts";
import { ProgressRule } from "./progress-rule.ts";
import type { SimEvent } from "./sim-event.ts";
import { type Entry, entryId, type SimJob } from "./sim-job.ts";
import type { Command, RulesOptions, Violation } from "./violation.ts";

/** A frame is on its way to init for this long: a command may start or end so much after its worker had to stop. */
const onTheWayMs = 5;
/** A holder stops this share of a lease before its deadline. */
const marginShare = 0.2;

/**
 * What must hold, checked at every event.
 *
 * A Redis that lost its last second takes back what it acknowledged in it, and nothing else is relaxed:
 * - a job that was accepted in it may be unknown; a client that waits for it learns so;
 * - a job whose beginning was recorded in it may run again, and one whose end was may end again, in another way;
 * - one that is safe to repeat, and whose end was, may begin a second time in the same epoch, and that may be taken back;
 * - events that a job published in it may be missing or be published again;
 * - a job that leaves its queue because its end, or its next attempt, was recorded in it ends as lost, by the audit.
 * Still, no epoch is given twice, and commands of two holders never run at the same time.
 */
export class Rules {
  readonly #options: RulesOptions;
  /** Redis' own state, and the rules' state that depends on it: both go back together. */
  readonly keyspace = new Keyspace();
  readonly #epochs = this.keyspace.map<string, { epoch: number; tookMs: number; worker: string }>();
  readonly #deadlines = new Map<string, number>();
  readonly #finished = this.keyspace.set<string>();
  /** Beginnings that are recorded. */
  readonly #begun = this.keyspace.set<string>();
  /** By command: the beginnings it was started for. */
  readonly #starts = new Map<string, string[]>();
  /** Ends that were ever published, of attempts and of jobs. */
  readonly #everEnded = new Set<string>();
  readonly #epochsGiven = new Set<string>();
  /** Jobs of which Redis lost some events. */
  readonly #forgotten = new Set<string>();
  readonly #vanished = new Set<string>();
  readonly #opened = new Set<string>();
  readonly #unbegun = this.keyspace.set<string>();
  readonly #ran = new Set<string>();
  readonly handOvers = new HandOverRule();
  readonly #order = new OrderRule(this.keyspace, (entry) => this.#hasEnded(entry));
  readonly progress: ProgressRule;
  readonly running = new Set<Command>();
  readonly jobs = this.keyspace.map<string, SimJob>();
  /** Job ids, in the order in which their commands started. */
  readonly started: string[] = [];
  violation: Violation | undefined;

  constructor(options: RulesOptions) {
    this.#options = options;
    this.progress = new ProgressRule(options, (...found) => this.broken(...found));
  }

  get areAllFinished(): boolean {
    return [...this.jobs.keys()].every((id) => this.#finished.has(id));
  }

  /** Redis has lost its last second, and with it events of these jobs. */
  forgot(jobIds: readonly string[]): void {
    for (const jobId of jobIds) this.#forgotten.add(jobId);
    for (const begin of this.#ran) if (!this.#begun.has(begin)) this.#ran.delete(begin);
    for (const [command, begins] of this.#starts)
      this.#starts.set(
        command,
        begins.filter((begin) => this.#begun.has(begin)),
      );
  }

  wasForgotten(jobId: string): boolean {
    return this.#forgotten.has(jobId);
  }

  /** The audit published its end. */
  hasVanished(jobId: string): boolean {
    return this.#vanished.has(jobId);
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
    this.#order.accepted(entry);
  }

  took(key: string, epoch: number, worker: string): void {
    const { time, trace } = this.#options;
    trace.note("redis", "took", `${key} epoch ${epoch} by ${worker}`);
    if (this.#epochsGiven.has(`${key} ${epoch}`))
      this.broken("no epoch is given twice", `${key} epoch ${epoch}`, [key]);
    this.#epochsGiven.add(`${key} ${epoch}`);
    this.#epochs.set(key, { epoch, tookMs: time.nowMs, worker });
    // Another process of the same worker ends them when it opens the container.
    for (const command of this.running)
      if (command.job.key === key && command.worker !== worker)
        this.#complain(command, "nothing runs when another worker takes the lease", `epoch ${epoch}`);
  }

  /** Until when an epoch's lease lasts, by Redis. */
  lasts(key: string, epoch: number, deadlineMs: number): void {
    this.#deadlines.set(`${key} ${epoch}`, deadlineMs);
  }

  /** Redis wrote nothing at all then, and gives the lease to no worker for a lease's length afterwards. */
  refusedToRenew(key: string, epoch: number): void {
    const { time, leaseMs } = this.#options;
    this.#options.trace.note("redis", "refuses", `to renew ${key} epoch ${epoch}`);
    this.lasts(key, epoch, Math.max(this.#deadlines.get(`${key} ${epoch}`) ?? 0, time.nowMs + leaseMs));
  }

  /** Nothing of the job may have run in that epoch, and nothing may run in it unless it begins again. */
  unbegun(jobId: string, attempt: number, epoch: number): void {
    const name = `${jobId}~${attempt} epoch ${epoch}`;
    this.#options.trace.note("redis", "unbegun", name);
    this.#unbegun.add(name);
    this.#begun.delete(name);
    this.handOvers.unbegun(jobId);
    const isRunAgain = this.#forgotten.has(jobId) && this.jobs.get(jobId)?.repeatable === true;
    if (this.#ran.has(name) && !isRunAgain) this.broken("what ran has begun", name, [jobId]);
  }

  opened(key: string, epoch: number): void {
    this.#opened.add(`${key} ${epoch}`);
  }

  released(key: string, epoch: number): void {
    this.#options.trace.note("redis", "released", `${key} epoch ${epoch}`);
    for (const { job, epoch: of } of this.running)
      if (job.key === key && of === epoch)
        this.broken("nothing runs when a lease is given up", `${job.id} of epoch ${of}`, [job.id, key]);
  }

  published(key: string, epoch: number, jobId: string, event: SimEvent): void {
    const { trace } = this.#options;
    const shown = event.type === "finished" ? `finished:${event.result.outcome.kind}` : event.type;
    trace.note("redis", "published", `${shown} ${jobId} ${key} epoch ${epoch}`);
    if (this.#finished.has(jobId))
      this.broken("nothing follows a terminal record", `${event.type} of ${jobId}`, [jobId, key]);
    if (epoch !== this.#epochs.get(key)?.epoch)
      this.broken("only the epoch that holds the sandbox publishes", `${event.type} of ${jobId}`, [
        jobId,
        key,
      ]);
    if (event.type === "started" && !this.#opened.has(`${key} ${epoch}`))
      this.broken("a job begins only when its sandbox is open", jobId, [jobId, key]);
    if (event.type === "started") {
      this.#unbegun.delete(`${jobId}~${event.attempt} epoch ${epoch}`);
      this.#begun.add(`${jobId}~${event.attempt} epoch ${epoch}`);
      this.handOvers.began({ key, jobId, attempt: event.attempt, epoch });
    }
    const isLost = event.type === "finished" && event.result.outcome.kind === "lost";
    // The holder cannot know what Redis forgot.
    const wrong =
      isLost && !this.#forgotten.has(jobId) ? this.handOvers.wrongToLose(jobId, epoch) : undefined;
    if (wrong !== undefined) this.broken("what init never got is not lost", wrong, [jobId, key]);
    if (event.type === "finished") this.#noteEnd(jobId);
    if (event.type === "retrying") this.#everEnded.add(`${jobId}~${event.attempt}`);
  }

  completed(key: string, { job, attempt }: Entry): void {
    this.#options.trace.note("redis", "completed", `${entryId({ job, attempt })} ${key}`);
    if (!this.#hasEnded({ job, attempt }))
      this.broken("a job is completed only after its end was published", `${job.id}~${attempt}`, [
        job.id,
        key,
      ]);
  }

  cancelled(jobId: string): void {
    this.#order.cancelled(jobId);
  }

  /** Published by a process without a lease: the canceller, or the audit. */
  endedBy(who: "cancel" | "audit", jobId: string): void {
    this.#options.trace.note("redis", who === "cancel" ? "ended-unbegun" : "vanished", jobId);
    if (this.#finished.has(jobId))
      this.broken("nothing follows a terminal record", `${who} of ${jobId}`, [jobId]);
    this.#noteEnd(jobId);
    if (who === "audit") this.#vanished.add(jobId);
    for (const command of this.running)
      if (command.job.id === jobId && this.#begun.has(beginOf(command)))
        this.broken("what runs is its holder's to end", jobId, [jobId]);
  }

  #noteEnd(jobId: string): void {
    this.#finished.add(jobId);
    this.#everEnded.add(jobId);
  }

  queued(what: string, id: string, token: string): void {
    this.#options.trace.note("redis", what, `${id} by ${token}`);
  }

  starts(command: Command): void {
    const { job, index, epoch, worker } = command;
    this.#options.trace.note(worker, "starts", `${entryId(command)}/${index} ${job.key} epoch ${epoch}`);
    this.started.push(job.id);
    const name = beginOf(command);
    if (this.#unbegun.has(name)) this.#complain(command, "what ran has begun");
    this.#checkEpoch(command);
    // If Redis forgot the beginning, the job counts as waiting.
    if (this.#begun.has(name)) {
      this.#ran.add(name);
      this.#checkRepeated(command);
      this.#order.check(command, (how, about) =>
        this.#complain(command, "jobs of a session run in order", how, about),
      );
    }
    this.running.add(command);
    this.#checkRoom(command);
  }

  ends(command: Command, how: string): void {
    const { index, worker } = command;
    this.running.delete(command);
    this.#options.trace.note(worker, "ends", `${entryId(command)}/${index} ${how}`);
    this.#checkMargin(command);
  }

  #checkRepeated(command: Command): void {
    const name = `${entryId(command)}/${command.index}`;
    const starts = [...(this.#starts.get(name) ?? []), beginOf(command)];
    this.#starts.set(name, starts);
    if (starts.length > 1 && !command.job.repeatable)
      this.#complain(command, "a command that is not safe to repeat is never started twice");
  }

  #checkEpoch(command: Command): void {
    const { time } = this.#options;
    const later = this.#later(command);
    for (const { job, epoch } of this.running)
      if (job.key === command.job.key && epoch !== command.epoch)
        this.#complain(command, "commands of two epochs never run at once", `beside ${job.id} of ${epoch}`, [
          job.id,
        ]);
    if (this.#finished.has(command.job.id) && this.#begun.has(beginOf(command)))
      this.#complain(command, "no command starts after its job's end");
    if (later && time.nowMs - later.tookMs > onTheWayMs)
      this.#complain(
        command,
        "no command of an old epoch starts once another took the lease",
        `${time.nowMs - later.tookMs} ms after epoch ${later.epoch}`,
      );
  }

  #checkRoom(command: Command): void {
    const { parallel, turns } = this.#options;
    const { job, epoch, process } = command;
    const beside = [...this.running].filter((other) => other.process === process);
    const here = beside.filter((other) => other.job.key === job.key && other.epoch === epoch);
    if (here.length > parallel) this.#complain(command, "a tenancy runs no more at once than it may");
    if (beside.length > turns) this.#complain(command, "a worker runs no more at once than it may");
    if (here.some((other) => other !== command && other.job.session === job.session))
      this.#complain(command, "one job of a session at a time");
  }

  /** A holder whose timers run ends its commands before its lease does. */
  #checkMargin(command: Command): void {
    const { job, epoch, process } = command;
    const { time, leaseMs } = this.#options;
    const deadlineMs = this.#deadlines.get(`${job.key} ${epoch}`) ?? 0;
    const sinceMs = process.runsSinceMs;
    if (sinceMs === undefined || sinceMs > deadlineMs - leaseMs * marginShare) return;
    if (time.nowMs > deadlineMs + onTheWayMs)
      this.#complain(command, "nothing runs past its lease's deadline", `by ${time.nowMs - deadlineMs} ms`);
  }

  /** The current holder, if it has a later epoch. */
  #later({ job, epoch }: Command) {
    const current = this.#epochs.get(job.key);
    return current && current.epoch > epoch ? current : undefined;
  }

  #complain(command: Command, rule: string, how = "", about: readonly string[] = []): void {
    const { job, index, worker } = command;
    this.broken(rule, `${entryId(command)}/${index} ${how}`, [job.id, job.key, worker, ...about]);
  }

  /** Whether its end was ever published, also if Redis lost it. */
  #hasEnded({ job, attempt }: Entry): boolean {
    return this.#everEnded.has(job.id) || this.#everEnded.has(`${job.id}~${attempt}`);
  }
}

function beginOf({ job, attempt, epoch }: Command): string {
  return `${job.id}~${attempt} epoch ${epoch}`;
}
