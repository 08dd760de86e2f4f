import { writesRefusedMs } from "@berth/protocol";
import type { PlantedBug } from "./planted-bug.ts";
import type { Rules } from "./rules.ts";
import type { VirtualTime } from "./virtual-time.ts";

interface LeaseRecord {
  worker: string;
  instance: string;
  epoch: number;
  deadlineMs: number;
  lengthMs: number;
}

/** What a holder proves itself with. */
export interface SimHolding {
  readonly epoch: number;
  readonly instance: string;
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
  readonly #bug: PlantedBug | undefined;
  readonly #leases = new Map<string, LeaseRecord>();
  readonly pending = new Set<string>();
  readonly paused = new Set<string>();
  /** Which life of a worker may speak in its name. */
  readonly #lives = new Map<string, string>();
  /** Writes that Redis has refused, by its own count; and since when, as far as anybody knows, there were no more. */
  refusals = 0;
  #seenRefusals = 0;
  #writesSinceMs = 0;

  constructor(time: VirtualTime, rules: Rules, bug?: PlantedBug) {
    this.#time = time;
    this.#rules = rules;
    this.#bug = bug;
  }

  claim({ worker, instance }: SimLife): void {
    this.#lives.set(worker, instance);
    this.writesSince();
  }

  /** What `writes.lua` does, at every heartbeat and take. */
  writesSince(): number {
    if (this.#seenRefusals !== this.refusals) this.#writesSinceMs = this.#time.nowMs;
    this.#seenRefusals = this.refusals;
    return this.#writesSinceMs;
  }

  take(
    key: string,
    { worker, instance, heirOf }: SimLife,
    lengthMs: number,
  ): { readonly epoch: number; readonly deadlineMs: number; readonly inherited: boolean } | undefined {
    if ((this.#lives.get(worker) ?? instance) !== instance) return undefined;
    const free = { worker: "", instance: "", epoch: 0, deadlineMs: 0, lengthMs };
    const held = this.#leases.get(key) ?? free;
    const own = held.worker === worker && (held.instance === instance || held.instance === heirOf);
    const live = this.#isRunning(held);
    if (live && !own) return undefined;
    if (held.worker !== "" && !own && this.#mayBeRenewed(held)) return undefined;
    if (this.paused.has(key)) return undefined;
    const epoch = Math.max(held.epoch + 1, Math.floor(this.#time.nowMs));
    const deadlineMs = this.#time.nowMs + lengthMs;
    this.#leases.set(key, { worker, instance, epoch, deadlineMs, lengthMs });
    this.#rules.took(key, epoch, worker);
    this.#rules.lasts(key, epoch, deadlineMs);
    return { epoch, deadlineMs, inherited: live && held.instance !== instance };
  }

  renew(
    key: string,
    holding: SimHolding,
    lengthMs: number,
  ): { readonly answer: "renewed" | "paused" | "lost"; readonly deadlineMs: number } {
    const held = this.#held(key, holding);
    if (!held) return { answer: "lost", deadlineMs: 0 };
    held.deadlineMs = this.#time.nowMs + lengthMs;
    this.#rules.lasts(key, holding.epoch, held.deadlineMs);
    return { answer: this.paused.has(key) ? "paused" : "renewed", deadlineMs: held.deadlineMs };
  }

  release(
    key: string,
    holding: SimHolding,
    left: number,
    onlyIfEmpty: boolean,
  ): "released" | "kept" | "lost" {
    const held = this.#held(key, holding);
    if (!held) return "lost";
    if (left > 0 && onlyIfEmpty) return "kept";
    held.worker = "";
    held.deadlineMs = 0;
    if (left === 0) this.pending.delete(key);
    this.#rules.released(key, holding.epoch);
    return "released";
  }

  /** Whether that holder may speak for the sandbox. Late is fine while nobody has taken it. */
  holds(key: string, holding: SimHolding): boolean {
    return this.#bug === "skip-the-fence" || this.#held(key, holding) !== undefined;
  }

  isLive(key: string): boolean {
    const held = this.#leases.get(key);
    return held !== undefined && this.#isRunning(held);
  }

  #isRunning({ worker, deadlineMs, lengthMs }: LeaseRecord): boolean {
    const earlyMs = this.#bug === "expire-early" ? lengthMs / 2 : 0;
    return worker !== "" && deadlineMs - earlyMs > this.#time.nowMs;
  }

  unheld(): string[] {
    return [...this.pending].filter((key) => !this.isLive(key) && !this.paused.has(key));
  }

  #mayBeRenewed({ lengthMs, deadlineMs }: LeaseRecord): boolean {
    const { nowMs } = this.#time;
    return nowMs <= deadlineMs + writesRefusedMs && nowMs < this.writesSince() + lengthMs;
  }

  #held(key: string, { epoch, instance }: SimHolding): LeaseRecord | undefined {
    const held = this.#leases.get(key);
    const isTheirs = held?.epoch === epoch && held.instance === instance && held.worker !== "";
    return isTheirs ? held : undefined;
  }
}
