import type { Progress, PublishResult } from "../../src/tenancy-ports.ts";
import type { SimHolding } from "./lease-model.ts";
import type {
  Beginning,
  EventsModelParts,
  JobOf,
  SimEvent,
  SimPublication,
  Unfinished,
} from "./sim-event.ts";

/** What `exchange.lua`, `unbegin.lua`, `publish.lua`, `cancel.lua` and `audit.lua` do: the holder is compared, and nothing follows a terminal record. */
export class EventsModel {
  readonly #parts: EventsModelParts;
  /** All events that were ever published, for the rules. */
  readonly #delivered: Map<string, readonly SimEvent[]>;
  /** The events that have not expired. */
  readonly #streams: Map<string, readonly SimEvent[]>;
  readonly #cancelled: Set<string>;
  readonly #begun: Map<string, number>;
  /** Which epoch began it last. */
  readonly #begunBy: Map<string, number>;
  readonly #ended: Set<string>;
  /** The last part that was published. */
  readonly #part: Map<string, string>;
  /** Accepted once, and expired. */
  readonly #unknown: Set<string>;
  readonly #unfinished: Map<string, Unfinished>;
  /** The last attempt whose beginning Redis has confirmed to a worker, also if Redis lost it since. */
  readonly #lastBegun = new Map<string, number>();
  onEnd: ((jobId: string) => void) | undefined;

  constructor(parts: EventsModelParts) {
    this.#parts = parts;
    const { keyspace } = parts.rules;
    this.#delivered = keyspace.map();
    this.#streams = keyspace.map();
    this.#cancelled = keyspace.set();
    this.#begun = keyspace.map();
    this.#begunBy = keyspace.map();
    this.#ended = keyspace.set();
    this.#part = keyspace.map();
    this.#unknown = keyspace.set();
    this.#unfinished = keyspace.map();
  }

  added(key: string, jobId: string, attempt: number): void {
    const sinceMs = this.#unfinished.get(jobId)?.sinceMs ?? this.#parts.time.nowMs;
    this.#unfinished.set(jobId, { key, added: attempt, sinceMs });
  }

  /** What a waiting client finds in the job's record. */
  stateOf(jobId: string): "ended" | "unknown" | "unfinished" {
    if (this.#ended.has(jobId)) return "ended";
    return this.#unfinished.has(jobId) ? "unfinished" : "unknown";
  }

  lastBegun(jobId: string): number {
    return this.#lastBegun.get(jobId) ?? 1;
  }

  /** Restores an earlier state, and returns the jobs that lost events. */
  forget(restore: () => void): string[] {
    const delivered = new Map(this.#delivered);
    restore();
    return [...delivered].flatMap(([jobId, events]) =>
      events.length === this.#delivered.get(jobId)?.length ? [] : [jobId],
    );
  }

  /** A page of the jobs that have not ended, the oldest first. Gives where the next page begins; 0 after the last one. */
  audit(page: { readonly from: number; readonly limit: number; readonly olderThanMs: number }): number {
    const beforeMs = this.#parts.time.nowMs - page.olderThanMs;
    const ids = [...this.#unfinished]
      .filter(([, { sinceMs }]) => sinceMs <= beforeMs)
      .sort(([, a], [, b]) => a.sinceMs - b.sinceMs)
      .slice(page.from, page.from + page.limit)
      .map(([id]) => id);
    const left = ids.filter((id) => this.auditOne(id) === "kept").length;
    return ids.length < page.limit ? 0 : page.from + left;
  }

  auditOne(jobId: string): "ended" | "finished-before" | "kept" {
    const { leases, queueOf, isScheduled, rules } = this.#parts;
    const known = this.#unfinished.get(jobId);
    if (!known) return "kept";
    const { key, added } = known;
    const last = this.#last(jobId);
    if (this.#ended.has(jobId) || last?.type === "finished") {
      this.#unfinished.delete(jobId);
      return "finished-before";
    }
    if (isScheduled(jobId, added) || isScheduled(jobId, added + 1)) return "kept";
    const queuedId = queuedIdOf({ jobId, attempt: added });
    if (queueOf(key).has(queuedId)) return "kept";
    const isHeld = leases.holder(key) !== undefined && leases.holder(key) === this.#begunBy.get(jobId);
    if (isHeld && (this.#begun.get(jobId) ?? 0) >= added && last?.type !== "retrying") return "kept";
    const outcome = { kind: "lost", message: "the job was in no queue, and no worker ran it" } as const;
    rules.endedBy("audit", jobId);
    const result = { outcome, value: {}, timing: { wallMs: 0, cpuMs: 0 } };
    this.#put(jobId, { type: "finished", result });
    if (queueOf(key).ended(queuedId) === undefined) queueOf(key).markEnded(queuedId, result);
    return "ended";
  }

  of(jobId: string): readonly SimEvent[] {
    return this.#delivered.get(jobId) ?? [];
  }

  /** The job's events that have not expired. */
  left(jobId: string): readonly SimEvent[] {
    return this.#streams.get(jobId) ?? [];
  }

  /** A day passes: records of ended jobs expire. `isKnown`: whether its client has the end, since a waiting client checks every half minute. */
  expire(isKnown = (_jobId: string) => true): void {
    for (const [jobId, stream] of this.#streams) {
      if (stream.at(-1)?.type !== "finished" || !isKnown(jobId)) continue;
      this.#streams.delete(jobId);
      for (const known of [this.#begun, this.#begunBy, this.#ended, this.#part, this.#cancelled])
        known.delete(jobId);
      this.#unknown.add(jobId);
    }
  }

  /** A stream is lost, as by an older version that let it expire. */
  lose(jobId: string): void {
    this.#streams.delete(jobId);
  }

  /** Notes that its cancellation was requested. */
  requestCancellation(jobId: string): void {
    this.#cancelled.add(jobId);
    this.#parts.rules.cancelled(jobId);
  }

  /** What `cancel.lua` does: ends an attempt that has not begun, whichever worker holds the sandbox. `far`: behind too many others. */
  cancel({ key, jobId, attempt }: JobOf, far = false): "ended" | "finished-before" | "begun" {
    const last = this.#last(jobId);
    if (this.#ended.has(jobId) || last?.type === "finished") return "finished-before";
    if (this.#unknown.has(jobId) || (this.#begun.get(jobId) ?? 0) >= attempt) return "begun";
    if (last && last.type !== "retrying") return "begun";
    const outcome = { kind: "cancelled", reason: "by request, before it began" } as const;
    const result = { outcome, value: {}, timing: { wallMs: 0, cpuMs: 0 } };
    this.#parts.rules.endedBy("cancel", jobId);
    this.#put(jobId, { type: "finished", result });
    const queue = this.#parts.queueOf(key);
    const queuedId = queuedIdOf({ jobId, attempt });
    queue.markEnded(queuedId, result);
    if (!far) queue.takeOut(queuedId);
    return "ended";
  }

  begin({ key, jobId, attempt, queuedId, before, notAfterMs, ...holding }: Beginning) {
    const { leases, queueOf, time } = this.#parts;
    const queue = queueOf(key);
    if (!leases.holds(key, holding)) return "fenced" as const;
    const begun = this.#begun.get(jobId) ?? 0;
    if (this.#ended.has(jobId) || begun > attempt || queue.ended(queuedId)) return "finished-before" as const;
    if (this.#cancelled.has(jobId)) return "cancelled" as const;
    if (begun === attempt && this.#begunBy.get(jobId) === holding.epoch) return "begun" as const;
    if (time.nowMs > notAfterMs) return "late" as const;
    if (queue.active.find((id) => !before.includes(id)) !== queuedId) return "out-of-turn" as const;
    this.#add({ key, jobId, attempt, ...holding, event: { type: "started", epoch: holding.epoch, attempt } });
    this.#begun.set(jobId, attempt);
    this.#lastBegun.set(jobId, attempt);
    this.#begunBy.set(jobId, holding.epoch);
    this.#part.delete(jobId);
    return "begun" as const;
  }

  /** Takes the next jobs. `beginning`: the first begins in the same step, unless something is taken already. */
  take(
    { key, ...holding }: SimHolding & { readonly key: string },
    token: string,
    beginning: { readonly notAfterMs: number; readonly take: string } | undefined,
  ) {
    const { leases, queueOf, rules, bug } = this.#parts;
    const queue = queueOf(key);
    const isBehind = queue.active.length > 0 && bug !== "begin-behind-others";
    const ids = queue.take(token, leases.holds(key, holding));
    if (!beginning) return { ids, fate: "" } as const;
    if (isBehind) rules.queued("behind", ids[0] ?? "nothing", token);
    if (isBehind || ids[0] === undefined) return { ids, fate: isBehind ? "behind" : "" } as const;
    const queuedId = ids[0];
    const { job, attempt } = queue.entry(queuedId);
    const before = queue.active.slice(0, queue.active.indexOf(queuedId));
    const { take, notAfterMs } = beginning;
    const fate = this.begin({ key, jobId: job.id, attempt, queuedId, before, ...holding, notAfterMs });
    if (fate === "begun") this.#part.set(job.id, take);
    if (fate === "begun") rules.queued("begun-at-once", queuedId, token);
    return { ids, fate } as const;
  }

  unbegin(
    { jobId, attempt, takes }: Omit<JobOf, "key"> & { readonly takes?: readonly string[] | undefined },
    epoch: number,
  ): boolean {
    if (takes && !takes.includes(this.#part.get(jobId) ?? "")) return false;
    const stream = this.#streams.get(jobId);
    const last = stream?.at(-1);
    if (last?.type !== "started" || last.epoch !== epoch || last.attempt !== attempt) return false;
    const left = stream?.slice(0, -1) ?? [];
    this.#begunBy.delete(jobId);
    this.#delivered.set(jobId, this.of(jobId).slice(0, -1));
    this.#parts.rules.unbegun(jobId, attempt, epoch);
    const before = left.at(-1)?.type;
    if (before === undefined || before === "retrying") this.#begun.set(jobId, attempt - 1);
    if (left.length === 0) this.#streams.delete(jobId);
    else this.#streams.set(jobId, left);
    return true;
  }

  publish(publication: SimPublication): PublishResult {
    const { leases, queueOf } = this.#parts;
    if (!leases.holds(publication.key, publication)) return "fenced";
    const published = this.#publish(publication);
    if (publication.leaves) queueOf(publication.key).leave(queuedIdOf(publication));
    return published;
  }

  #publish(publication: SimPublication): PublishResult {
    const { key, jobId, event } = publication;
    const queue = this.#parts.queueOf(key);
    const ends = event.type === "finished" || event.type === "retrying";
    const marked = ends ? queue.ended(queuedIdOf(publication)) : undefined;
    if (this.#ended.has(jobId) || (marked !== undefined && marked !== "retrying")) return "finished-before";
    if ("part" in event && this.#part.get(jobId) === event.part) return "published";
    if (ends) queue.markEnded(queuedIdOf(publication), event.type === "finished" ? event.result : "retrying");
    if ("part" in event) this.#part.set(jobId, event.part);
    this.#add(publication);
    return "published";
  }

  progress({ key, jobId, attempt }: JobOf): Progress {
    const last = this.#last(jobId);
    if (last?.type === "finished") return { state: "finished", result: last.result };
    const ended = this.#parts.queueOf(key).ended(queuedIdOf({ jobId, attempt }));
    if (ended === "retrying") return { state: "retried" };
    if (ended) return { state: "finished", result: ended };
    const begun = this.#begun.get(jobId) ?? 0;
    if (begun > attempt) return { state: "retried" };
    if (!last) return { state: begun === attempt ? "started" : "not-started" };
    if (begun > 0 && begun < attempt && last.type !== "retrying") return { state: "not-started" };
    if (last.type !== "retrying") return { state: "started" };
    return { state: last.attempt >= attempt ? "retried" : "not-started" };
  }

  #last(jobId: string): SimEvent | undefined {
    return this.#streams.get(jobId)?.at(-1);
  }

  #add({ key, epoch, jobId, event }: SimPublication): void {
    this.#put(jobId, event);
    this.#parts.rules.published(key, epoch, jobId, event);
  }

  #put(jobId: string, event: SimEvent): void {
    for (const streams of [this.#streams, this.#delivered])
      streams.set(jobId, [...(streams.get(jobId) ?? []), event]);
    if (event.type !== "finished") return;
    this.#ended.add(jobId);
    this.#unfinished.delete(jobId);
    this.onEnd?.(jobId);
  }
}

function queuedIdOf({ jobId, attempt }: { readonly jobId: string; readonly attempt: number }): string {
  return attempt > 1 ? `${jobId}~${attempt}` : jobId;
}
