import { EventsModel } from "./events-model.ts";
import { LeaseModel } from "./lease-model.ts";
import { Marker } from "./marker.ts";
import type { PlantedBug } from "./planted-bug.ts";
import { QueueModel } from "./queue-model.ts";
import type { Rules } from "./rules.ts";
import { type Entry, entryId, type SimJob } from "./sim-job.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** Everything the fleet shares. Each method is one step that nobody can get into the middle of. */
export class SimRedis {
  readonly #rules: Rules;
  readonly #time: VirtualTime;
  readonly #queues = new Map<string, QueueModel>();
  readonly #offers: string[] = [];
  readonly #scheduled = new Set<string>();
  readonly leases: LeaseModel;
  readonly events: EventsModel;
  readonly offered = new Marker();
  readonly buried = new Set<string>();

  constructor(time: VirtualTime, rules: Rules, bug?: PlantedBug) {
    this.#rules = rules;
    this.#time = time;
    this.leases = new LeaseModel(time, rules, bug);
    this.events = new EventsModel({ time, rules, leases: this.leases, queueOf: (key) => this.queue(key) });
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

  sweep(): void {
    for (const key of this.leases.unheld()) this.offer(key);
  }

  /** What a producer does in one round trip. Whether somebody holds the sandbox. */
  add(entry: Entry): boolean {
    const { key } = entry.job;
    this.queue(key).add(entry);
    this.leases.pending.add(key);
    return this.leases.isLive(key);
  }

  /** The attempt of a job that nobody has begun, as far as can be seen. */
  waitingAttempt({ id, key }: SimJob): number {
    const last = this.events.of(id).findLast((event) => event.type === "retrying");
    return last?.type === "retrying" ? last.attempt + 1 : this.queue(key).entry(id).attempt;
  }

  /** Kept until it is due, then put in line by whoever runs schedules. The same attempt twice is one. */
  schedule(entry: Entry, dueAtMs: number): void {
    const name = entryId(entry);
    if (this.#scheduled.has(name)) return;
    this.#scheduled.add(name);
    this.#time.after(dueAtMs - this.#time.nowMs, () => {
      if (this.events.of(entry.job.id).at(-1)?.type === "finished") return;
      if (!this.add(entry)) this.offer(entry.job.key);
    });
  }
}
