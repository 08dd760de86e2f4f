import type { JobResult } from "@berth/protocol";
import type { Progress, PublishResult } from "../../src/tenancy-ports.ts";
import type { LeaseModel } from "./lease-model.ts";
import type { Rules } from "./rules.ts";

export type SimEvent =
  | { readonly type: "started"; readonly epoch: number; readonly attempt: number }
  | { readonly type: "output"; readonly text: string; readonly part: string }
  | { readonly type: "artifact"; readonly id: string; readonly part: string }
  | { readonly type: "retrying"; readonly attempt: number; readonly part: string }
  | { readonly type: "finished"; readonly result: JobResult };

interface Beginning {
  readonly key: string;
  readonly epoch: number;
  readonly jobId: string;
  readonly attempt: number;
  readonly queuedId: string;
  readonly before: readonly string[];
}

/** What `begin.lua`, `publish.lua` and `cancel.lua` do: the epoch is compared, and nothing follows a terminal record. */
export class EventsModel {
  readonly #leases: LeaseModel;
  readonly #rules: Rules;
  readonly #streams = new Map<string, SimEvent[]>();
  readonly #cancelled = new Set<string>();
  readonly #begun = new Map<string, number>();

  constructor(leases: LeaseModel, rules: Rules) {
    this.#leases = leases;
    this.#rules = rules;
  }

  of(jobId: string): readonly SimEvent[] {
    return this.#streams.get(jobId) ?? [];
  }

  /** Somebody wants it ended: a beginning finds that. */
  wishCancelled(jobId: string): void {
    this.#cancelled.add(jobId);
    this.#rules.cancelled(jobId);
  }

  /** What `cancel.lua` does: ends an attempt that nobody has begun, whoever holds the sandbox. */
  cancel(jobId: string, attempt: number): "told" | "finished-before" | "begun" {
    const last = this.of(jobId).at(-1);
    if (last?.type === "finished") return "finished-before";
    if ((this.#begun.get(jobId) ?? 0) >= attempt) return "begun";
    if (last && last.type !== "retrying") return "begun";
    const outcome = { kind: "cancelled", reason: "by request, before it began" } as const;
    const result = { outcome, value: {}, timing: { wallMs: 0, cpuMs: 0 } };
    this.#put(jobId, { type: "finished", result });
    this.#rules.endedUnbegun(jobId);
    return "told";
  }

  /** `taken`: from the queue, the first taken first. `before`: those of them that whoever begins it knows of. */
  begin(
    { key, epoch, jobId, attempt, queuedId, before }: Beginning,
    taken: readonly string[],
  ): "begun" | "fenced" | "finished-before" | "cancelled" | "out-of-turn" {
    if (!this.#leases.holds(key, epoch)) return "fenced";
    const last = this.of(jobId).at(-1);
    if (last?.type === "finished") return "finished-before";
    if (last?.type === "retrying" && last.attempt >= attempt) return "finished-before";
    if ((this.#begun.get(jobId) ?? 0) > attempt) return "finished-before";
    if (last?.type === "started" && last.epoch === epoch && last.attempt === attempt) return "begun";
    if (this.#cancelled.has(jobId)) return "cancelled";
    if (taken.find((id) => !before.includes(id)) !== queuedId) return "out-of-turn";
    this.#add(key, epoch, jobId, { type: "started", epoch, attempt });
    this.#begun.set(jobId, attempt);
    return "begun";
  }

  publish(key: string, epoch: number, jobId: string, event: SimEvent): PublishResult {
    if (!this.#leases.holds(key, epoch)) return "fenced";
    const last = this.of(jobId).at(-1);
    if (last?.type === "finished") return "finished-before";
    if (last && "part" in last && "part" in event && last.part === event.part) return "published";
    this.#add(key, epoch, jobId, event);
    return "published";
  }

  progress(jobId: string, attempt: number): Progress {
    const last = this.of(jobId).at(-1);
    if (!last) return { state: "not-started" };
    if (last.type === "finished") return { state: "finished", result: last.result };
    const begun = this.#begun.get(jobId) ?? 0;
    if (begun > attempt) return { state: "retried" };
    if (begun > 0 && begun < attempt && last.type !== "retrying") return { state: "not-started" };
    if (last.type !== "retrying") return { state: "started" };
    return { state: last.attempt >= attempt ? "retried" : "not-started" };
  }

  #add(key: string, epoch: number, jobId: string, event: SimEvent): void {
    this.#put(jobId, event);
    this.#rules.published(key, epoch, jobId, event);
  }

  #put(jobId: string, event: SimEvent): void {
    const stream = this.#streams.get(jobId);
    if (stream) stream.push(event);
    else this.#streams.set(jobId, [event]);
  }
}
