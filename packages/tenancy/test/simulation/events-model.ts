import type { JobResult } from "@berth/protocol";
import type { Progress, PublishResult } from "../../src/tenancy-ports.ts";
import type { LeaseModel, SimHolding } from "./lease-model.ts";
import type { QueueModel } from "./queue-model.ts";
import type { Rules } from "./rules.ts";
import type { VirtualTime } from "./virtual-time.ts";

export type SimEvent =
  | { readonly type: "started"; readonly epoch: number; readonly attempt: number }
  | { readonly type: "output"; readonly text: string; readonly part: string }
  | { readonly type: "artifact"; readonly id: string; readonly part: string }
  | { readonly type: "retrying"; readonly attempt: number; readonly part: string }
  | { readonly type: "finished"; readonly result: JobResult };

interface JobOf {
  readonly key: string;
  readonly jobId: string;
  readonly attempt: number;
}

interface Beginning extends JobOf, SimHolding {
  readonly queuedId: string;
  readonly before: readonly string[];
  readonly notAfterMs: number;
}

interface Said extends JobOf, SimHolding {
  readonly event: SimEvent;
  /** The attempt is out of its queue in the same step. */
  readonly leaves?: boolean;
}

interface EventsModelParts {
  readonly time: VirtualTime;
  readonly leases: LeaseModel;
  readonly rules: Rules;
  readonly queueOf: (key: string) => QueueModel;
}

/** What `exchange.lua`, `unbegin.lua`, `publish.lua` and `cancel.lua` do: the holder is compared, and nothing follows a terminal record. */
export class EventsModel {
  readonly #parts: EventsModelParts;
  /** Everything that was ever said, for the rules. */
  readonly #told = new Map<string, SimEvent[]>();
  /** What is left of it. */
  readonly #streams = new Map<string, SimEvent[]>();
  readonly #cancelled = new Set<string>();
  readonly #begun = new Map<string, number>();
  /** Which epoch began it last. */
  readonly #begunBy = new Map<string, number>();
  readonly #ended = new Set<string>();
  /** The last part of what it says. */
  readonly #part = new Map<string, string>();
  /** Accepted once, and forgotten. */
  readonly #unknown = new Set<string>();

  constructor(parts: EventsModelParts) {
    this.#parts = parts;
  }

  of(jobId: string): readonly SimEvent[] {
    return this.#told.get(jobId) ?? [];
  }

  /** What has not expired of it. */
  left(jobId: string): readonly SimEvent[] {
    return this.#streams.get(jobId) ?? [];
  }

  /** A day passes: what is known of jobs that have ended is gone. */
  expire(): void {
    for (const [jobId, stream] of this.#streams) {
      if (stream.at(-1)?.type !== "finished") continue;
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

  /** Somebody wants it ended: a beginning finds that. */
  wishCancelled(jobId: string): void {
    this.#cancelled.add(jobId);
    this.#parts.rules.cancelled(jobId);
  }

  /** What `cancel.lua` does: ends an attempt that nobody has begun, whoever holds the sandbox. `far`: behind too many others. */
  cancel({ key, jobId, attempt }: JobOf, far = false): "told" | "finished-before" | "begun" {
    const last = this.#last(jobId);
    if (this.#ended.has(jobId) || last?.type === "finished") return "finished-before";
    if (this.#unknown.has(jobId) || (this.#begun.get(jobId) ?? 0) >= attempt) return "begun";
    if (last && last.type !== "retrying") return "begun";
    const outcome = { kind: "cancelled", reason: "by request, before it began" } as const;
    const result = { outcome, value: {}, timing: { wallMs: 0, cpuMs: 0 } };
    this.#put(jobId, { type: "finished", result });
    this.#ended.add(jobId);
    this.#parts.rules.endedUnbegun(jobId);
    const queue = this.#parts.queueOf(key);
    const queuedId = queuedIdOf({ jobId, attempt });
    if (far || !queue.has(queuedId)) queue.markEnded(queuedId, result);
    else queue.remove(queuedId);
    return "told";
  }

  begin({ key, jobId, attempt, queuedId, before, notAfterMs, ...holding }: Beginning) {
    const { leases, queueOf, time } = this.#parts;
    const queue = queueOf(key);
    if (!leases.holds(key, holding)) return "fenced" as const;
    const begun = this.#begun.get(jobId) ?? 0;
    if (this.#ended.has(jobId) || begun > attempt || queue.ended(queuedId)) return "finished-before" as const;
    if (begun === attempt && this.#begunBy.get(jobId) === holding.epoch) return "begun" as const;
    if (time.nowMs > notAfterMs) return "late" as const;
    if (this.#cancelled.has(jobId)) return "cancelled" as const;
    if (queue.active.find((id) => !before.includes(id)) !== queuedId) return "out-of-turn" as const;
    this.#add({ key, jobId, attempt, ...holding, event: { type: "started", epoch: holding.epoch, attempt } });
    this.#begun.set(jobId, attempt);
    this.#begunBy.set(jobId, holding.epoch);
    this.#part.delete(jobId);
    return "begun" as const;
  }

  unbegin({ jobId, attempt }: Omit<JobOf, "key">, epoch: number): void {
    const stream = this.#streams.get(jobId);
    const last = stream?.at(-1);
    if (last?.type !== "started" || last.epoch !== epoch || last.attempt !== attempt) return;
    stream?.pop();
    this.#begunBy.delete(jobId);
    this.#told.get(jobId)?.pop();
    this.#parts.rules.unbegun(jobId, attempt, epoch);
    const before = stream?.at(-1)?.type;
    if (before === undefined || before === "retrying") this.#begun.set(jobId, attempt - 1);
    if (stream?.length === 0) this.#streams.delete(jobId);
  }

  publish(said: Said): PublishResult {
    const { leases, queueOf } = this.#parts;
    if (!leases.holds(said.key, said)) return "fenced";
    const published = this.#publish(said);
    if (said.leaves) queueOf(said.key).leave(queuedIdOf(said));
    return published;
  }

  #publish(said: Said): PublishResult {
    const { key, jobId, event } = said;
    const queue = this.#parts.queueOf(key);
    const ends = event.type === "finished" || event.type === "retrying";
    const marked = ends ? queue.ended(queuedIdOf(said)) : undefined;
    if (this.#ended.has(jobId) || (marked !== undefined && marked !== "retrying")) return "finished-before";
    if ("part" in event && this.#part.get(jobId) === event.part) return "published";
    if (ends) queue.markEnded(queuedIdOf(said), event.type === "finished" ? event.result : "retrying");
    if ("part" in event) this.#part.set(jobId, event.part);
    if (event.type === "finished") this.#ended.add(jobId);
    this.#add(said);
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

  #add({ key, epoch, jobId, event }: Said): void {
    this.#put(jobId, event);
    this.#parts.rules.published(key, epoch, jobId, event);
  }

  #put(jobId: string, event: SimEvent): void {
    for (const streams of [this.#streams, this.#told]) {
      const stream = streams.get(jobId);
      if (stream) stream.push(event);
      else streams.set(jobId, [event]);
    }
  }
}

function queuedIdOf({ jobId, attempt }: { readonly jobId: string; readonly attempt: number }): string {
  return attempt > 1 ? `${jobId}~${attempt}` : jobId;
}
