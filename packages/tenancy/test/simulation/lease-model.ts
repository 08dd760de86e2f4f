import { writesRefusedMs } from "@berth/protocol";
import type { PlantedBug } from "./planted-bug.ts";
import type { Rules } from "./rules.ts";
import type { VirtualTime } from "./virtual-time.ts";

interface LeaseRecord {
  readonly worker: string;
  readonly instance: string;
  readonly epoch: number;
  readonly deadlineMs: number;
  readonly lengthMs: number;
}

/** Which process of Redis was seen, its count of refusals, since when there were no more, and when it was seen to have restarted. */
interface Writes {
  readonly run: number;
  readonly refusals: number;
  readonly sinceMs: number;
  readonly restartedMs: number;
}

/** A holder's fencing token. */
export interface SimHolding {
  readonly epoch: number;
  readonly instance: string;
}

/** One process of a worker, and an earlier one that it knows to be dead. */
export interface SimInstance {
  readonly worker: string;
  readonly instance: string;
  readonly predecessor?: string | undefined;
}

/** What `claim.lua`, `take.lua`, `renew.lua`, `release.lua` and `unheld.lua` do, by the clock of the simulated Redis. */
export class LeaseModel {
  readonly #time: VirtualTime;
  readonly #rules: Rules;
  readonly #bug: PlantedBug | undefined;
  readonly #leases: Map<string, LeaseRecord>;
  /** By when it was marked. */
  readonly pending: Map<string, number>;
  readonly paused: Set<string>;
  /** The process that has claimed each worker id. Never lost here: a worker that finds itself replaced starts again. */
  readonly #instances = new Map<string, string>();
  readonly #writes: Map<"seen", Writes>;
  /** Writes that this process of Redis has refused, by its own count. */
  refusals = 0;
  #run = 1;

  constructor(time: VirtualTime, rules: Rules, bug?: PlantedBug) {
    this.#time = time;
    this.#rules = rules;
    this.#bug = bug;
    const { keyspace } = rules;
    this.#leases = keyspace.map();
    this.pending = keyspace.map();
    this.paused = keyspace.set();
    this.#writes = keyspace.map();
  }

  claim({ worker, instance }: SimInstance): void {
    this.#instances.set(worker, instance);
    this.writesSince();
  }

  /** What `writes.lua` does, at every heartbeat and take. */
  writesSince(): Writes {
    const seen = this.#writes.get("seen");
    const { refusals } = this;
    if (seen && seen.run === this.#run && seen.refusals === refusals) return seen;
    const { nowMs } = this.#time;
    const hasRestarted = seen !== undefined && seen.run !== this.#run;
    const restartedMs = hasRestarted ? nowMs : (seen?.restartedMs ?? Number.NEGATIVE_INFINITY);
    const now = { run: this.#run, refusals, sinceMs: nowMs, restartedMs };
    this.#writes.set("seen", now);
    return now;
  }

  /** Another process of Redis starts, whose count begins at 0. */
  restarted(): void {
    this.#run++;
    this.refusals = 0;
  }

  mark(key: string): void {
    if (!this.pending.has(key)) this.pending.set(key, this.#time.nowMs);
  }

  take(
    key: string,
    { worker, instance, predecessor }: SimInstance,
    lengthMs: number,
  ): { readonly epoch: number; readonly deadlineMs: number; readonly takenOver: boolean } | undefined {
    if ((this.#instances.get(worker) ?? instance) !== instance) return undefined;
    const free = { worker: "", instance: "", epoch: 0, deadlineMs: 0, lengthMs };
    const held = this.#leases.get(key) ?? free;
    const own = held.worker === worker && (held.instance === instance || held.instance === predecessor);
    const live = this.#isRunning(held);
    if (live && !own) return undefined;
    const writes = this.writesSince();
    if (held.worker !== "" && !own && this.#mayBeRenewed(held, writes)) return undefined;
    if (this.#mayBeForgotten(writes, lengthMs)) return undefined;
    if (this.paused.has(key)) return undefined;
    const epoch = Math.max(held.epoch + 1, Math.floor(this.#time.nowMs));
    const deadlineMs = this.#time.nowMs + lengthMs;
    this.#leases.set(key, { worker, instance, epoch, deadlineMs, lengthMs });
    this.#rules.took(key, epoch, worker);
    this.#rules.lasts(key, epoch, deadlineMs);
    return { epoch, deadlineMs, takenOver: live && held.instance !== instance };
  }

  renew(
    key: string,
    holding: SimHolding,
    lengthMs: number,
  ): { readonly answer: "renewed" | "paused" | "lost"; readonly deadlineMs: number } {
    const held = this.#held(key, holding);
    if (!held) return { answer: "lost", deadlineMs: 0 };
    const deadlineMs = this.#time.nowMs + lengthMs;
    this.#leases.set(key, { ...held, deadlineMs });
    this.#rules.lasts(key, holding.epoch, deadlineMs);
    return { answer: this.paused.has(key) ? "paused" : "renewed", deadlineMs };
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
    this.#leases.set(key, { ...held, worker: "", instance: "", deadlineMs: 0 });
    if (left === 0) this.pending.delete(key);
    this.#rules.released(key, holding.epoch);
    return "released";
  }

  /** Whether that holder may publish for the sandbox. Also after its deadline, while no other worker has taken the lease. */
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

  isUnheld(key: string): boolean {
    return this.pending.has(key) && !this.isLive(key) && !this.paused.has(key);
  }

  /** The longest pending first. A page ends with all that were marked at the same time; `next` is 0 after the last one. */
  unheld(page: { readonly after: number; readonly limit: number; readonly olderThanMs: number }): {
    readonly keys: readonly string[];
    readonly next: number;
  } {
    const beforeMs = this.#time.nowMs - page.olderThanMs;
    const marked = [...this.pending]
      .filter(([, atMs]) => atMs > page.after && atMs <= beforeMs)
      .sort(([, a], [, b]) => a - b);
    const lastMs = marked[page.limit - 1]?.[1];
    const found = lastMs === undefined ? marked : marked.filter(([, atMs]) => atMs <= lastMs);
    return {
      keys: found.map(([key]) => key).filter((key) => this.isUnheld(key)),
      next: lastMs ?? 0,
    };
  }

  holder(key: string): number | undefined {
    return this.isLive(key) ? this.#leases.get(key)?.epoch : undefined;
  }

  #mayBeRenewed({ lengthMs, deadlineMs }: LeaseRecord, { sinceMs }: Writes): boolean {
    const { nowMs } = this.#time;
    return nowMs <= deadlineMs + writesRefusedMs && nowMs < sinceMs + lengthMs;
  }

  #mayBeForgotten({ restartedMs, sinceMs }: Writes, lengthMs: number): boolean {
    const { nowMs } = this.#time;
    return nowMs <= restartedMs + lengthMs + writesRefusedMs && nowMs < sinceMs + lengthMs;
  }

  #held(key: string, { epoch, instance }: SimHolding): LeaseRecord | undefined {
    const held = this.#leases.get(key);
    const isTheirs = held?.epoch === epoch && held.instance === instance && held.worker !== "";
    return isTheirs ? held : undefined;
  }
}
