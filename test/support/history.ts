import { unfinishedKeys } from "@berth/ledger";
import { redisKeys, type SandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { type LedgerLine, readLedger } from "./ledger.ts";

/** A job that a test submitted, with the facts that the test knows itself. */
export interface HistoryJob {
  readonly id: string;
  readonly key: SandboxKey;
  readonly session: string;
  /** Idempotent: it may run again if its worker dies. */
  readonly repeatable: boolean;
  /** What its command writes into the ledger; absent when it writes nothing there. */
  readonly mark?: string | undefined;
  /** False for delayed, retried and prioritised jobs, which have no promised order. */
  readonly unordered?: boolean | undefined;
}

export interface HistoryEvent {
  /** Redis' own: milliseconds, then a count within one. Only the milliseconds compare between streams. */
  readonly id: string;
  readonly type: string;
  readonly data: string;
}

export interface HistoryContainer {
  readonly id: string;
  readonly key: string;
  readonly worker: string;
  readonly epoch: number;
}

export interface HistoryLease {
  /** Empty after a release. */
  readonly worker: string;
  readonly epoch: number;
  /** Whether the lease has time left, by Redis' clock. */
  readonly live: boolean;
}

/** The records of a run, read after its end. */
export interface History {
  /** In the order in which they were enqueued. */
  readonly jobs: readonly HistoryJob[];
  readonly events: ReadonlyMap<string, readonly HistoryEvent[]>;
  /** Entries of the results stream, by job id. */
  readonly results: ReadonlyMap<string, readonly string[]>;
  readonly leases: ReadonlyMap<string, HistoryLease>;
  readonly ledgers: ReadonlyMap<string, readonly LedgerLine[]>;
  readonly containers: readonly HistoryContainer[];
  /** Jobs that still lie in their queue, by id. */
  readonly queued: ReadonlySet<string>;
}

/** A job that began, by its stream. */
export interface Start {
  readonly job: HistoryJob;
  readonly atMs: number;
  readonly epoch: number;
  readonly worker: string;
}

export function startsOf({ jobs, events }: History): Start[] {
  return jobs.flatMap((job) =>
    (events.get(job.id) ?? [])
      .filter(({ type }) => type === "started")
      .map((event) => {
        const { epoch, worker } = JSON.parse(event.data) as { epoch: number; worker: string };
        return { job, atMs: msOf(event), epoch, worker };
      }),
  );
}

/** The time of an entry, by Redis' clock. */
export function msOf({ id }: HistoryEvent): number {
  return Number(id.split("-")[0]);
}

export interface HistorySource {
  readonly redis: Redis;
  readonly jobs: readonly HistoryJob[];
  readonly workspaces: string;
  readonly containers: readonly HistoryContainer[];
}

/** Reads streams, leases, queues and ledgers straight from Redis, without the code under test. */
export async function readHistory({ redis, jobs, workspaces, containers }: HistorySource): Promise<History> {
  const nowMs = Number((await redis.time())[0]) * 1_000;
  const keys = new Set<SandboxKey>(jobs.map(({ key }) => key));
  for (const { key } of containers) keys.add(key as SandboxKey);
  const events = new Map<string, HistoryEvent[]>();
  await inParts(jobs, async ({ key, id }) => {
    events.set(id, (await entriesOf(redis, redisKeys.events(key, id))).map(eventOf));
  });
  const results = Map.groupBy(await entriesOf(redis, redisKeys.results), ({ fields }) => fields.job ?? "");
  const leases = new Map<string, HistoryLease>();
  const ledgers = new Map<string, LedgerLine[]>();
  const queued = new Set<string>();
  await inParts([...keys], async (key) => {
    const { worker = "", epoch = "0", deadline = "0" } = await redis.hgetall(redisKeys.lease(key));
    leases.set(key, { worker, epoch: Number(epoch), live: worker !== "" && Number(deadline) > nowMs });
    ledgers.set(key, await readLedger(workspaces, key));
    for (const id of await waitingIn(redis, key)) queued.add(id);
  });
  return {
    jobs,
    events,
    results: new Map([...results].map(([id, entries]) => [id, entries.map(({ fields }) => fields.d ?? "")])),
    leases,
    ledgers,
    containers,
    queued,
  };
}

interface Entry {
  readonly id: string;
  readonly fields: Readonly<Record<string, string>>;
}

async function entriesOf(redis: Redis, stream: string): Promise<Entry[]> {
  return (await redis.xrange(stream, "-", "+")).map(([id, flat]) => {
    const fields: Record<string, string> = {};
    for (let index = 0; index < flat.length; index += 2) fields[flat[index] ?? ""] = flat[index + 1] ?? "";
    return { id, fields };
  });
}

function eventOf({ id, fields }: Entry): HistoryEvent {
  return { id, type: fields.t ?? "", data: fields.d ?? "" };
}

async function waitingIn(redis: Redis, key: SandboxKey): Promise<string[]> {
  const found: string[] = [];
  for (const list of unfinishedKeys(key)) {
    const type = await redis.type(list);
    if (type === "list") found.push(...(await redis.lrange(list, 0, -1)));
    if (type === "zset") found.push(...(await redis.zrange(list, "0", "-1")));
  }
  return found;
}

/** Maps thousands of jobs, a few at a time. */
async function inParts<T>(all: readonly T[], each: (one: T) => Promise<void>): Promise<void> {
  const part = 200;
  for (let from = 0; from < all.length; from += part)
    await Promise.all(all.slice(from, from + part).map(each));
}
