import type { Rules } from "./rules.ts";
import type { VirtualTime } from "./virtual-time.ts";

interface LeaseRecord {
  worker: string;
  instance: string;
  epoch: number;
  deadlineMs: number;
}

/** One process of a worker, and an earlier one that it knows to be dead. */
export interface SimLife {
  readonly worker: string;
  readonly instance: string;
  readonly heirOf?: string | undefined;
}

/** What `claim.lua`, `take.lua`, `renew.lua`, `release.lua`, `mark.lua` and `unheld.lua` do, by the time of the Redis of the simulation. */
export class LeaseModel {
  readonly #time: VirtualTime;
  readonly #rules: Rules;
  readonly #leases = new Map<string, LeaseRecord>();
  readonly pending = new Set<string>();
  readonly paused = new Set<string>();
  /** Which life of a worker may speak in its name. */
  readonly #lives = new Map<string, string>();

  constructor(time: VirtualTime, rules: Rules) {
    this.#time = time;
    this.#rules = rules;
  }

  claim({ worker, instance }: SimLife): void {
    this.#lives.set(worker, instance);
  }

  take(
    key: string,
    { worker, instance, heirOf }: SimLife,
    lengthMs: number,
  ): { readonly epoch: number; readonly inherited: boolean } | undefined {
    if ((this.#lives.get(worker) ?? instance) !== instance) return undefined;
    const held = this.#leases.get(key) ?? { worker: "", instance: "", epoch: 0, deadlineMs: 0 };
    const own = held.worker === worker && (held.instance === instance || held.instance === heirOf);
    const live = held.worker !== "" && held.deadlineMs > this.#time.nowMs;
    if (live && !own) return undefined;
    if (this.paused.has(key)) return undefined;
    const epoch = held.epoch + 1;
    const deadlineMs = this.#time.nowMs + lengthMs;
    this.#leases.set(key, { worker, instance, epoch, deadlineMs });
    this.#rules.took(key, epoch, worker);
    this.#rules.lasts(key, epoch, deadlineMs);
    return { epoch, inherited: live && held.instance !== instance };
  }

  renew(key: string, epoch: number, lengthMs: number): "renewed" | "paused" | "lost" {
    const held = this.#held(key, epoch);
    if (!held) return "lost";
    held.deadlineMs = this.#time.nowMs + lengthMs;
    this.#rules.lasts(key, epoch, held.deadlineMs);
    return this.paused.has(key) ? "paused" : "renewed";
  }

  release(key: string, epoch: number, left: number, onlyIfEmpty: boolean): "released" | "kept" | "lost" {
    const held = this.#held(key, epoch);
    if (!held) return "lost";
    if (left > 0 && onlyIfEmpty) return "kept";
    held.worker = "";
    held.deadlineMs = 0;
    if (left === 0) this.pending.delete(key);
    this.#rules.released(key, epoch);
    return "released";
  }

  /** Whether that epoch may speak for the sandbox. Late is fine while nobody has taken it. */
  holds(key: string, epoch: number): boolean {
    return this.#held(key, epoch) !== undefined;
  }

  isLive(key: string): boolean {
    const held = this.#leases.get(key);
    return held !== undefined && held.worker !== "" && held.deadlineMs > this.#time.nowMs;
  }

  unheld(): string[] {
    return [...this.pending].filter((key) => !this.isLive(key) && !this.paused.has(key));
  }

  #held(key: string, epoch: number): LeaseRecord | undefined {
    const held = this.#leases.get(key);
    return held && held.epoch === epoch && held.worker !== "" ? held : undefined;
  }
}
