import { defaultPool, type LeaseState, Leases } from "@berth/lease";
import { type Job, type SandboxKey, sandboxKeyOf, stagedAboveBytes } from "@berth/protocol";
import { acceptJob, defaultWaitingLimits, JobQueues, Offers, unfinishedKeys } from "@berth/queue";
import type { Redis } from "@berth/redis";
import { Staging } from "@berth/streams";

export interface EnqueueOptions {
  /** Nobody else can know the job's id: it was made just now, of chance. */
  readonly newId?: boolean;
}

/** With more room than this a producer does not ask before it adds; a limit may be passed by what producers add at the same time. */
const roomEnough = 1_000;
/** What was known of a sandbox's room is good for this long. */
const roomFreshMs = 1_000;
const roomsKept = 10_000;

/**
 * Hands jobs to the fleet: accepted, added to the sandbox's queue, marked, offered. Adding and marking are one round trip, in that
 * order: whoever releases in between sees the job, and whoever looks afterwards sees the mark. Whoever dies between two steps leaves
 * something the sweep finds or nothing at all; only after the mark is a job promised to end.
 */
export class Enqueuer {
  readonly #redis: Redis;
  readonly #queues: JobQueues;
  readonly #leases: Leases;
  readonly #offers: Offers;
  readonly #staging: Staging;
  /** By sandbox, while any of its jobs is on its way: what was handed in first is sent first, whatever it had to ask. */
  readonly #lastSent = new Map<SandboxKey, Promise<void>>();
  readonly #rooms = new Map<SandboxKey, { room: number; readonly atMs: number }>();

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#queues = new JobQueues(redis);
    this.#leases = new Leases(redis);
    this.#offers = new Offers(redis);
    this.#staging = new Staging(redis);
  }

  /** `known`: this attempt of the job was added before, by whomever. */
  async enqueue(job: Job, { newId = false }: EnqueueOptions = {}): Promise<"added" | "known"> {
    const key = sandboxKeyOf(job);
    const before = this.#lastSent.get(key);
    const sent = Promise.withResolvers<void>();
    this.#lastSent.set(key, sent.promise);
    try {
      await before;
      return await this.#inTurn(key, job, newId, () => sent.resolve());
    } finally {
      sent.resolve();
      if (this.#lastSent.get(key) === sent.promise) this.#lastSent.delete(key);
    }
  }

  async close(): Promise<void> {
    await this.#queues.close();
    await this.#offers.close();
  }

  async #inTurn(key: SandboxKey, job: Job, newId: boolean, onSent: () => void): Promise<"added" | "known"> {
    const ask = !newId || job.pool !== undefined || !this.#hasRoom(key);
    if (ask && (await acceptJob(this.#redis, key, job)) === "known") return "known";
    const lease = await this.#add(key, job, onSent);
    this.#remember(key, lease.room);
    if (!lease.live && !lease.paused) await this.#offers.add(key, { pool: lease.pool, home: lease.home });
    return "added";
  }

  async #add(key: SandboxKey, job: Job, onSent: () => void): Promise<LeaseState> {
    const { id, tenant, attempt, session, pool = defaultPool } = job;
    const large = Buffer.byteLength(JSON.stringify(job.request)) > stagedAboveBytes;
    const staged = large ? await this.#staging.put(key, id, job.request) : undefined;
    const limits = { ...defaultWaitingLimits, queueKeys: unfinishedKeys(key) };
    const about = { id, tenant, attempt, pool, session, kind: job.request.kind };
    const mark = () => {
      const marking = this.#leases.mark(key, about, limits);
      onSent();
      return marking;
    };
    return await this.#queues.add(key, job, mark, staged);
  }

  #hasRoom(key: SandboxKey): boolean {
    const known = this.#rooms.get(key);
    if (!known || known.room < roomEnough || performance.now() - known.atMs > roomFreshMs) return false;
    known.room--;
    return true;
  }

  #remember(key: SandboxKey, room: number): void {
    this.#rooms.delete(key);
    this.#rooms.set(key, { room, atMs: performance.now() });
    const [oldest] = this.#rooms.keys();
    if (oldest !== undefined && this.#rooms.size > roomsKept) this.#rooms.delete(oldest);
  }
}
