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
import { OutputBatch } from "./output-batch.ts";
import { Sessions } from "./sessions.ts";
import type { FetchedJob, TenancyPorts } from "./tenancy-ports.ts";

export interface TenancyOptions {
  readonly key: SandboxKey;
  readonly epoch: number;
  readonly leaseMs: number;
  /** Jobs of different sessions that run at once. */
  readonly parallel: number;
  /** Without work for this long, the sandbox is given up. */
  readonly idleMs: number;
}

/** How a tenancy ended. `handed-back`: its queue still has jobs, and the sandbox should be offered again. */
export type TenancyEnd = "released" | "handed-back" | "fenced";

interface Admitted {
  readonly fetched: FetchedJob;
  readonly job: Job;
}

/** Fetched ahead, so that a session with many jobs does not hide the others. */
const parkedMost = 128;
/** The holder stops this share of a lease before its deadline: its clock and Redis' are not the same. */
const marginShare = 0.2;
/** Pause after the job source failed, as it does while Redis is away. */
const troublePauseMs = 250;

/**
 * The stretch of time in which this worker holds one sandbox.
 *
 *   opening ──▶ settling ──▶ working ◀──▶ idle ──queue empty──▶ released
 *                              │  └──asked to yield──▶ yielding ──jobs left──▶ handed back
 *                              └──lease lost, or not renewed in time──▶ fenced
 *
 * Promises: a job is completed in its queue only after its terminal record is published; nothing is published with an epoch
 * that no longer holds; a job that began and whose end nobody knows is not begun again unless it is safe to repeat. When it
 * cannot renew in time it stops by itself, without asking anybody.
 */
export class Tenancy {
  readonly #options: TenancyOptions;
  readonly #ports: TenancyPorts;
  readonly #sessions: Sessions<Admitted>;
  readonly #fence = new AbortController();
  readonly #runs = new Map<string, { readonly abort: AbortController; readonly end: Promise<void> }>();
  #renewedAtMs: number;
  #idleSinceMs: number;
  #yielding = false;
  #wake = Promise.withResolvers<void>();

  constructor(options: TenancyOptions, ports: TenancyPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#sessions = new Sessions(options.parallel, ({ job }) => job.session);
    this.#renewedAtMs = ports.clock.now();
    this.#idleSinceMs = this.#renewedAtMs;
  }

  get key(): SandboxKey {
    return this.#options.key;
  }

  /** Since when nothing runs or waits here, or undefined while something does. */
  get idleSinceMs(): number | undefined {
    return this.#sessions.running + this.#sessions.parked === 0 ? this.#idleSinceMs : undefined;
  }

  /** Takes no more jobs, finishes those that run, and gives the sandbox up. */
  yield(): void {
    this.#yielding = true;
    this.#stir();
  }

  /** Ends what runs; what is safe to repeat goes back in line, the rest ends as lost. */
  abandon(): void {
    this.yield();
    for (const { abort } of this.#runs.values()) abort.abort("its worker is stopping");
  }

  cancel(jobId: string): void {
    this.#runs.get(jobId)?.abort.abort("by request");
  }

  /** From the taken lease to its end. Does not throw. */
  async run(): Promise<TenancyEnd> {
    const renewing = this.#keepRenewing();
    let end: TenancyEnd = "fenced";
    try {
      await this.#settleDeadEpoch();
      end = await this.#work();
    } catch (error) {
      if (!this.#fence.signal.aborted) this.#trouble(error);
      end = this.#fence.signal.aborted ? "fenced" : await this.#handBack().catch(() => "fenced" as const);
    } finally {
      this.#fence.abort("over");
      await Promise.all([renewing, ...[...this.#runs.values()].map(({ end: run }) => run)]);
      await this.#ports.jobs.close().catch(() => {});
      await this.#ports.sandbox.close({ remove: true }).catch((error) => this.#trouble(error));
    }
    return end;
  }

  /** A dead epoch's jobs, one by one: told already, never begun, safe to repeat, or lost. */
  async #settleDeadEpoch(): Promise<void> {
    const { jobs, events, report } = this.#ports;
    const counts = { lost: 0, back: 0, done: 0 };
    const back: FetchedJob[] = [];
    for (const fetched of await jobs.active()) {
      const progress = await events.progress(fetched.id);
      const parsed = jobSchema.safeParse(fetched.data);
      if (progress === "finished") {
        await fetched.complete();
        counts.done++;
      } else if (
        progress === "not-started" ||
        !parsed.success ||
        isRepeatable(parsed.data.request, parsed.data.idempotent)
      ) {
        back.push(fetched);
      } else {
        const message = "its worker died while it ran; it may have run in part and was not run again";
        await this.#finish({ fetched, job: parsed.data }, failed({ kind: "lost", message }));
        counts.lost++;
      }
    }
    // Each goes to the front of the line: the first in line last.
    for (const fetched of back.reverse()) await fetched.putBack();
    counts.back = back.length;
    if (counts.lost + counts.back + counts.done > 0)
      report({ event: "tenancy.settled", key: this.key, ...counts });
  }

  async #work(): Promise<TenancyEnd> {
    for (;;) {
      this.#fence.signal.throwIfAborted();
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
    if (idleSinceMs === undefined || this.#ports.clock.now() - idleSinceMs < this.#options.idleMs)
      return false;
    const result = await this.#ports.lease.release({ onlyIfEmpty: true });
    if (result === "lost") throw this.#fenced("the lease was taken over");
    return result === "released";
  }

  async #handBack(): Promise<TenancyEnd> {
    await Promise.all([...this.#runs.values()].map(({ end }) => end));
    for (const { fetched } of this.#sessions.empty().reverse()) await fetched.putBack();
    this.#fence.signal.throwIfAborted();
    const empty = await this.#ports.lease.release({ onlyIfEmpty: true });
    if (empty === "released") return "released";
    if (empty === "kept" && (await this.#ports.lease.release({ onlyIfEmpty: false })) === "released") {
      return "handed-back";
    }
    return "fenced";
  }

  /** Checks a job and puts it in its session's line. One that cannot be read ends here and blocks nobody. */
  async #admit(fetched: FetchedJob): Promise<void> {
    const parsed = jobSchema.safeParse(fetched.data);
    if (parsed.success) {
      this.#sessions.add({ fetched, job: parsed.data });
      return;
    }
    const message = `invalid job: ${problemsOf(parsed.error).join("; ")}`;
    const result = failed({ kind: "refused", code: "invalid-job", message: message.slice(0, 2_000) });
    await this.#publish(() => this.#ports.events.finished(fetched.id, undefined, result));
    await fetched.complete();
  }

  #begin(): void {
    if (this.#yielding) return;
    for (let next = this.#sessions.take(); next !== undefined; next = this.#sessions.take()) {
      const admitted = next;
      const abort = new AbortController();
      const end = this.#execute(admitted, abort)
        .catch((error: unknown) => {
          if (!this.#fence.signal.aborted) this.#trouble(error);
        })
        .finally(() => {
          this.#runs.delete(admitted.fetched.id);
          this.#sessions.done(admitted);
          this.#idleSinceMs = this.#ports.clock.now();
          if (!this.#fence.signal.aborted) this.#begin();
          this.#stir();
        });
      this.#runs.set(admitted.fetched.id, { abort, end });
    }
  }

  async #execute(admitted: Admitted, abort: AbortController): Promise<void> {
    const { events, jobs, clock } = this.#ports;
    const { fetched, job } = admitted;
    if ((await events.progress(fetched.id)) === "finished") {
      await fetched.complete();
      return;
    }
    if (await jobs.isCancelled(fetched.id)) {
      await this.#finish(admitted, failed({ kind: "cancelled", reason: "by request, before it began" }));
      return;
    }
    if (job.deadlineAtMs !== undefined && clock.wall() > job.deadlineAtMs) {
      const message = "its deadline had passed before it could begin";
      await this.#finish(admitted, failed({ kind: "refused", code: "deadline", message }));
      return;
    }
    await this.#publish(() => events.started(fetched.id));
    const begun = clock.now();
    const result = await this.#run(admitted, abort.signal);
    const repeat =
      this.#yielding && result.outcome.kind === "cancelled" && isRepeatable(job.request, job.idempotent);
    if (repeat && abort.signal.reason === "its worker is stopping") {
      await fetched.putBack();
      return;
    }
    await this.#finish(admitted, result, begun);
  }

  async #run({ fetched, job }: Admitted, signal: AbortSignal): Promise<JobResult> {
    const { sandbox, events } = this.#ports;
    const batch = new OutputBatch(sandbox.limits.keptBytes, (pieces) =>
      this.#publish(() => events.output(fetched.id, pieces)),
    );
    try {
      return await sandbox.run(job.request, {
        signal: AbortSignal.any([signal, this.#fence.signal]),
        onOutput: (piece) => batch.add(piece),
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
    await fetched.complete();
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

  /** Tries until it is said or we may no longer speak. */
  async #publish(say: () => Promise<"published" | "fenced" | "finished-before">): Promise<void> {
    for (;;) {
      this.#fence.signal.throwIfAborted();
      try {
        if ((await say()) !== "fenced") return;
      } catch (error) {
        if (isFault(error) && !error.retry) throw error;
        await this.#ports.clock.sleep(troublePauseMs, this.#fence.signal);
        continue;
      }
      throw this.#fenced("somebody else publishes for the sandbox");
    }
  }

  async #keepRenewing(): Promise<void> {
    const { leaseMs } = this.#options;
    const { clock, lease } = this.#ports;
    while (!this.#fence.signal.aborted) {
      await clock.sleep(leaseMs / 4, this.#fence.signal).catch(() => {});
      if (this.#fence.signal.aborted) return;
      const asked = clock.now();
      const deadline = clock.sleep(
        Math.max(0, this.#renewedAtMs + leaseMs * (1 - marginShare) - asked),
        this.#fence.signal,
      );
      const answer = await Promise.race([
        lease.renew().catch(() => "unknown" as const),
        deadline.then(() => "late" as const).catch(() => "late" as const),
      ]);
      if (answer === "renewed") this.#renewedAtMs = asked;
      else if (answer === "lost") this.#fenced("the lease was taken over");
      else if (clock.now() - this.#renewedAtMs >= leaseMs * (1 - marginShare))
        this.#fenced("it could not renew in time");
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
    this.#ports.report({ event: "tenancy.trouble", key: this.key, message });
  }

  #stir(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }

  async #stirred(): Promise<void> {
    await this.#wake.promise;
  }
}

function failed(outcome: Outcome): JobResult {
  return { outcome, value: {}, timing: { wallMs: 0, cpuMs: 0 } };
}
