import type { JobResult } from "@berth/protocol";
import { Marker } from "./marker.ts";
import type { Rules } from "./rules.ts";
import { type Entry, entryId } from "./sim-job.ts";

/**
 * What BullMQ's scripts do with one sandbox's queue: a line, what is taken from it, and a lock with a token on each that is.
 * None of them knows of leases: whoever speaks to Redis may take from the line.
 */
export class QueueModel {
  readonly #key: string;
  readonly #rules: Rules;
  readonly #known = new Map<string, Entry>();
  readonly #locks = new Map<string, string>();
  readonly #removed = new Set<string>();
  /** What the entry of an attempt that has ended says. */
  readonly #ended = new Map<string, JobResult | "retrying">();
  /** The next first. */
  readonly wait: string[] = [];
  /** The first taken first. */
  readonly active: string[] = [];
  readonly marker = new Marker();

  constructor(key: string, rules: Rules) {
    this.#key = key;
    this.#rules = rules;
  }

  get left(): number {
    return this.wait.length + this.active.length;
  }

  /** An id that was there before is not added again. */
  add(entry: Entry): void {
    const id = entryId(entry);
    if (this.#known.has(id)) return;
    this.#known.set(id, entry);
    this.wait.push(id);
    this.marker.set();
    this.#rules.accepted(entry);
  }

  /** Whoever has taken it. */
  remove(id: string): void {
    for (const list of [this.wait, this.active]) {
      const index = list.indexOf(id);
      if (index >= 0) list.splice(index, 1);
    }
    this.#locks.delete(id);
    this.#ended.delete(id);
    this.#removed.add(id);
  }

  /** On the entry, which stays for a while when it is completed. */
  markEnded(id: string, how: JobResult | "retrying"): void {
    if (this.#known.has(id) && !this.#removed.has(id)) this.#ended.set(id, how);
  }

  ended(id: string): JobResult | "retrying" | undefined {
    return this.#ended.get(id);
  }

  entry(id: string): Entry {
    const entry = this.#known.get(id);
    if (!entry) throw new Error(`no job ${id}`);
    return entry;
  }

  take(token: string): string | undefined {
    const id = this.wait.shift();
    if (id === undefined) return undefined;
    this.active.push(id);
    this.#locks.set(id, token);
    this.#rules.queued("taken", id, token);
    if (this.wait.length > 0) this.marker.set();
    return id;
  }

  /** `own.lua`: only for whoever holds the sandbox. */
  own(id: string, token: string, holds: boolean): void {
    if (!holds) throw new Error(`${token} no longer holds ${this.#key}`);
    this.#rules.queued("owned", id, token);
    if (this.active.includes(id)) this.#locks.set(id, token);
  }

  complete(id: string, token: string): void {
    this.#unlock(id, token);
    if (!this.#leave(id)) throw new Error(`Job ${id} is not in the active state. finished`);
    this.#rules.completed(this.#key, this.entry(id));
  }

  #unlock(id: string, token: string): void {
    const lock = this.#locks.get(id);
    if (lock !== token) throw new Error(`${lock ? "Lock mismatch" : "Missing lock"} for job ${id}`);
    this.#locks.delete(id);
  }

  #leave(id: string): boolean {
    const index = this.active.indexOf(id);
    if (index >= 0) this.active.splice(index, 1);
    return index >= 0;
  }
}
