import { EventsModel } from "./events-model.ts";
import { LeaseModel } from "./lease-model.ts";
import { Marker } from "./marker.ts";
import type { PlantedBug } from "./planted-bug.ts";
import { QueueModel } from "./queue-model.ts";
import type { Rules } from "./rules.ts";
import { type Entry, entryId, type SimJob } from "./sim-job.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** Everything the fleet shares. Each method is one atomic step. */
export class SimRedis {
  readonly #rules: Rules;
  readonly #time: VirtualTime;
  readonly #queues = new Map<string, QueueModel>();
  readonly #offers: string[];
  readonly #scheduled: Map<string, { readonly entry: Entry; readonly dueAtMs: number }>;
  readonly leases: LeaseModel;
  readonly events: EventsModel;
  readonly offered = new Marker();
  readonly deadLetters = new Set<string>();

  constructor(time: VirtualTime, rules: Rules, bug?: PlantedBug) {
    this.#rules = rules;
    this.#time = time;
    this.#offers = rules.keyspace.list();
    this.#scheduled = rules.keyspace.map();
    this.leases = new LeaseModel(time, rules, bug);
    this.events = new EventsModel({
      time,
      rules,
      bug,
      leases: this.leases,
      queueOf: (key) => this.queue(key),
      isScheduled: (id, attempt) => this.#scheduled.has(entryId({ job: { id }, attempt })),
    });
  }

  queue(key: string): QueueModel {
    const queue = this.#queues.get(key) ?? new QueueModel(key, this.#rules);
    this.#queues.set(key, queue);
    return queue;
  }

  get offersWaiting(): number {
    return this.#offers.length;
  }

  offer(key: string): void {
    if (this.#offers.includes(key)) return;
    this.#offers.push(key);
    this.offered.set();
  }

  takeOffer(): string | undefined {
    const key = this.#offers.shift();
    if (this.#offers.length > 0) this.offered.set();
    return key;
  }

  /** One page of what waits. Gives where the next one begins. */
  sweep(page: Parameters<LeaseModel["unheld"]>[0]): number {
    const { keys, next } = this.leases.unheld(page);
    for (const key of keys) this.offer(key);
    return next;
  }

  /** It restarts, and has forgotten what it wrote since then. */
  forget(restore: () => void): void {
    this.#rules.forgot(this.events.forget(restore));
    this.leases.restarted();
    for (const name of this.#scheduled.keys()) this.#handOnWhenDue(name);
    if (this.#offers.length > 0) this.offered.set();
  }

  /** What a producer does in one round trip. Returns whether a worker holds the sandbox. */
  add(entry: Entry): boolean {
    const { key, id } = entry.job;
    if (this.events.stateOf(id) === "ended" || !this.queue(key).add(entry)) return this.leases.isLive(key);
    this.events.added(key, id, entry.attempt);
    this.leases.mark(key);
    return this.leases.isLive(key);
  }

  /** The attempt of a job that has not begun, as far as can be seen. */
  waitingAttempt({ id, key }: SimJob): number {
    const last = this.events.of(id).findLast((event) => event.type === "retrying");
    return last?.type === "retrying" ? last.attempt + 1 : this.queue(key).entry(id).attempt;
  }

  /** Kept until it is due, then put in line by a worker's scheduler. The same attempt twice is one. */
  schedule(entry: Entry, dueAtMs: number): void {
    const name = entryId(entry);
    if (this.#scheduled.has(name)) return;
    this.#scheduled.set(name, { entry, dueAtMs });
    this.#handOnWhenDue(name);
  }

  #handOnWhenDue(name: string): void {
    const dueAtMs = this.#scheduled.get(name)?.dueAtMs ?? 0;
    this.#time.after(dueAtMs - this.#time.nowMs, () => {
      const entry = this.#scheduled.get(name)?.entry;
      if (!entry) return;
      if (!this.add(entry)) this.offer(entry.job.key);
      this.#scheduled.delete(name);
    });
  }
}
