import type { Keyspace } from "./keyspace.ts";
import { type Entry, entryId, type SimJob } from "./sim-job.ts";
import type { Command } from "./violation.ts";

/** Jobs of a session run in the order in which they were accepted. */
export class OrderRule {
  /** By session. */
  readonly #lines: Map<string, readonly Entry[]>;
  readonly #cancelled: Set<string>;
  readonly #overtaken: Set<string>;
  readonly #hasEnded: (entry: Entry) => boolean;

  /** `hasEnded`: whether its end was ever published, also if Redis lost it. */
  constructor(keyspace: Keyspace, hasEnded: (entry: Entry) => boolean) {
    this.#lines = keyspace.map();
    this.#cancelled = keyspace.set();
    this.#overtaken = keyspace.set();
    this.#hasEnded = hasEnded;
  }

  accepted(entry: Entry): void {
    this.#lines.set(lineOf(entry.job), [...this.#line(entry.job), entry]);
  }

  cancelled(jobId: string): void {
    this.#cancelled.add(jobId);
  }

  check(command: Command, complain: (how: string, about: readonly string[]) => void): void {
    if (this.#overtaken.has(entryId(command))) complain("after a later one", []);
    for (const earlier of this.#unfinishedBefore(command)) {
      // A canceller does not wait for the publication; the job must never run after it.
      if (this.#cancelled.has(earlier.job.id)) this.#overtaken.add(entryId(earlier));
      else complain(`before ${entryId(earlier)}`, [earlier.job.id]);
    }
  }

  #unfinishedBefore({ job, attempt }: Command): Entry[] {
    const entries = this.#line(job);
    const own = entries.findIndex((other) => other.job === job && other.attempt === attempt);
    return entries.slice(0, Math.max(0, own)).filter((entry) => !this.#hasEnded(entry));
  }

  #line(job: SimJob): readonly Entry[] {
    return this.#lines.get(lineOf(job)) ?? [];
  }
}

function lineOf({ key, session }: SimJob): string {
  return `${key}/${session}`;
}
