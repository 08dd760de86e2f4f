import type { JobResult } from "@berth/protocol";
import { Marker } from "./marker.ts";
import type { Rules } from "./rules.ts";
import { type Entry, entryId } from "./sim-job.ts";

/** As `JobSource`. */
const takenAtOnce = 16;

/** What `submit.lua`, `exchange.lua`, `pick.lua` and `complete.lua` do with one sandbox's queue. */
export class QueueModel {
  readonly #key: string;
  readonly #rules: Rules;
  /** All entries that were ever added. */
  readonly #entries = new Map<string, Entry>();
  readonly #known: Set<string>;
  /** The mark on the entry of an ended attempt. */
  readonly #ended: Map<string, JobResult | "retrying">;
  /** The next first. */
  readonly wait: string[];
  /** The first taken first. */
  readonly active: string[];
  readonly marker = new Marker();

  constructor(key: string, rules: Rules) {
    this.#key = key;
    this.#rules = rules;
    const { keyspace } = rules;
    this.#known = keyspace.set();
    this.#ended = keyspace.map();
    this.wait = keyspace.list();
    this.active = keyspace.list();
  }

  get left(): number {
    return this.wait.length + this.active.length;
  }

  /** It waits, or is taken. */
  has(id: string): boolean {
    return this.wait.includes(id) || this.active.includes(id);
  }

  /** An id that was there before is not added again. */
  add(entry: Entry): boolean {
    const id = entryId(entry);
    if (this.#known.has(id)) return false;
    this.#known.add(id);
    this.#entries.set(id, entry);
    this.wait.push(id);
    this.marker.set();
    this.#rules.accepted(entry);
    return true;
  }

  /** The holder that has taken it. */
  takeOut(id: string): void {
    for (const list of [this.wait, this.active]) {
      const index = list.indexOf(id);
      if (index >= 0) list.splice(index, 1);
    }
  }

  /** On the entry, which stays for a while when it has left the queue. */
  markEnded(id: string, how: JobResult | "retrying"): void {
    if (this.#known.has(id)) this.#ended.set(id, how);
  }

  ended(id: string): JobResult | "retrying" | undefined {
    return this.#ended.get(id);
  }

  entry(id: string): Entry {
    const entry = this.#entries.get(id);
    if (!entry) throw new Error(`no job ${id}`);
    return entry;
  }

  /** Only for the holder. */
  take(token: string, holds: boolean): string[] {
    if (!holds) throw new Error(`${token} no longer holds ${this.#key}`);
    const ids = this.wait.splice(0, takenAtOnce);
    this.active.push(...ids);
    for (const id of ids) this.#rules.queued("taken", id, token);
    return ids;
  }

  /** Only for the holder. Whether it is taken now. */
  pick(id: string, token: string, holds: boolean): boolean {
    if (!holds) throw new Error(`${token} no longer holds ${this.#key}`);
    const index = this.wait.indexOf(id);
    if (index < 0) return this.active.includes(id);
    this.active.push(...this.wait.splice(index, 1));
    this.#rules.queued("taken", id, token);
    return true;
  }

  /** Only for the holder. Does nothing if it has left before. */
  complete(id: string, token: string, holds: boolean): void {
    if (!holds) throw new Error(`${token} no longer holds ${this.#key}`);
    this.leave(id);
  }

  /** With its earlier attempts, which a Redis that lost its last second may have put back. */
  leave(id: string): void {
    const [jobId = id, attempt = "1"] = id.split("~");
    for (let earlier = 1; earlier < Number(attempt); earlier++)
      this.#leave(earlier === 1 ? jobId : `${jobId}~${earlier}`);
    this.#leave(id);
  }

  #leave(id: string): void {
    const index = this.active.indexOf(id);
    if (index < 0) return;
    this.active.splice(index, 1);
    this.#rules.completed(this.#key, this.entry(id));
  }
}
