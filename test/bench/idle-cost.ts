import { setTimeout as sleep } from "node:timers/promises";
import { forgetIdleQueues } from "@berth/ledger";
import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { type ConnectionOptions, Queue, Worker } from "bullmq";
import { BenchFleet } from "./bench-fleet.ts";
import { inLanes } from "./measure.ts";
import { enqueueNothing, NullWorker } from "./null-worker.ts";
import { aimedRow, type Findings, type Row, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "idle-cost";
const held = 50;
/** Keys that expire a day after a job's end, and up to an hour later. Usage and dead letters are kept for longer. */
const dayMs = 25 * 3_600_000;

export interface Footprint {
  readonly bytes: number;
  readonly keys: number;
  readonly commandsPerSecond: number;
  readonly connections: number;
}

/** What an idle fleet costs Redis. */
export const idleCost: Scenario = {
  name,
  about: `Redis with 0, 100 and 1,000 known tenants, then ${held} of them held; per tenant against a bare BullMQ queue`,
  async run(host, plan): Promise<Findings> {
    // A multiple of the lease: each lease has four renewals and one read of each held sandbox's queue.
    const lookMs = plan.quick ? 5_000 : 10_000;
    const mine = await series(
      host,
      lookMs,
      (redis, tenant) => useOnce(redis, tenant),
      holdOurs,
      plan.onRound,
    );
    const bare = await series(
      host,
      lookMs,
      (redis, tenant) => useBareOnce(redis, tenant),
      holdBare,
      () => {},
    );
    const [empty, hundred, thousand, holding, expired] = mine;
    const [bareEmpty, , bareThousand, bareHolding] = bare;
    if (
      !empty ||
      !hundred ||
      !thousand ||
      !holding ||
      !expired ||
      !bareEmpty ||
      !bareThousand ||
      !bareHolding
    )
      throw new Error("a look is missing");
    const per = (after: number, before: number, count: number) => (after - before) / count;
    const line = (metric: string, unit: string, ours: number, baseline: number): Row =>
      row({
        scenario: name,
        metric,
        unit,
        better: "lower",
        ours,
        baseline,
        baselineName: "bare BullMQ",
        samples: { ours: 1, baseline: 1 },
      });
    const aimed = (metric: string, unit: string, ours: number, atMost: number): Row =>
      aimedRow({
        scenario: name,
        metric,
        unit,
        ours,
        atMost,
        samples: 1,
        because: "what Redis' own count says",
      });
    return {
      rows: [
        line(
          "a known tenant",
          "bytes",
          per(thousand.bytes, empty.bytes, 1_000),
          per(bareThousand.bytes, bareEmpty.bytes, 1_000),
        ),
        line(
          "a known tenant",
          "keys",
          per(thousand.keys, empty.keys, 1_000),
          per(bareThousand.keys, bareEmpty.keys, 1_000),
        ),
        aimed("a known tenant, its records expired", "bytes", per(expired.bytes, empty.bytes, 1_000), 2_048),
        aimed(
          "a known tenant, its records expired",
          "keys",
          Math.round(per(expired.keys, empty.keys, 1_000)),
          4,
        ),
        aimed(`${held} held`, "commands/s", holding.commandsPerSecond - thousand.commandsPerSecond, 100),
        line(
          `${held} held`,
          "commands/s",
          holding.commandsPerSecond - thousand.commandsPerSecond,
          bareHolding.commandsPerSecond - bareThousand.commandsPerSecond,
        ),
        aimed("a whole worker that holds a sandbox", "connections", await workerConnections(host), 5),
        line(
          `${held} held`,
          "connections",
          holding.connections - thousand.connections,
          bareHolding.connections - bareThousand.connections,
        ),
      ],
      notes: mine.map(
        ({ bytes, keys, commandsPerSecond, connections }, index) =>
          `${["no tenants", "100 known", "1,000 known", `1,000 known, ${held} held`, "1,000 known, their records expired"][index]}: ${short(bytes / 1024)} KiB, ${keys} keys, ${short(commandsPerSecond)} commands/s, ${connections} connections`,
      ),
    };
  },
};

type Use = (redis: Redis, tenant: string) => Promise<void>;
type Hold = (redis: Redis, tenants: readonly string[]) => Promise<() => Promise<void>>;

async function series(
  host: Parameters<Scenario["run"]>[0],
  lookMs: number,
  use: Use,
  hold: Hold,
  onRound: (done: number, total: number) => void,
): Promise<Footprint[]> {
  await using fleet = await BenchFleet.open(host);
  const redis = fleet.connect("blocking");
  const looks = [await footprint(redis, lookMs)];
  const tenants = Array.from({ length: 1_000 }, (_, index) => `known-${index}`);
  for (const [from, to] of [
    [0, 100],
    [100, 1_000],
  ] as const) {
    await inLanes(to - from, 8, (index) => use(redis, tenants[from + index] ?? ""));
    looks.push(await footprint(redis, lookMs));
    onRound(looks.length - 1, 3);
  }
  const release = await hold(redis, tenants.slice(0, held));
  // Wait until all are taken, so that only idling is measured.
  await sleep(2_000);
  looks.push(await footprint(redis, lookMs));
  onRound(3, 3);
  await release();
  await expireRecords(redis);
  looks.push(await footprint(redis, lookMs));
  return looks;
}

/** Removes what expires a day after a job's end, and the results: a fleet keeps 100,000 of them with any number of tenants. */
async function expireRecords(redis: Redis): Promise<void> {
  await redis.unlink(redisKeys.results);
  await forgetIdleQueues(redis, { idleMs: 0, limit: 1_000 });
  let cursor = "0";
  do {
    const [next, keys] = await redis.scan(cursor, "COUNT", 1_000);
    cursor = next;
    const expiring = await Promise.all(
      keys.map(async (key) => {
        const leftMs = await redis.pttl(key);
        return leftMs > 0 && leftMs <= dayMs ? key : undefined;
      }),
    );
    await Promise.all(expiring.map((key) => key && redis.unlink(key)));
  } while (cursor !== "0");
}

export async function footprint(redis: Redis, lookMs: number): Promise<Footprint> {
  const before = Number(await info(redis, "stats", "total_commands_processed"));
  await sleep(lookMs);
  const after = Number(await info(redis, "stats", "total_commands_processed"));
  return {
    bytes: Number(await info(redis, "memory", "used_memory_dataset")),
    keys: await redis.dbsize(),
    // Without the INFO command that read `before`.
    commandsPerSecond: (after - before - 1) / (lookMs / 1_000),
    connections: Number(await info(redis, "clients", "connected_clients")),
  };
}

async function info(redis: Redis, section: string, field: string): Promise<string> {
  const text = await redis.info(section);
  return new RegExp(`^${field}:(\\S+)`, "m").exec(text)?.[1] ?? "0";
}

export async function useOnce(redis: Redis, tenant: string): Promise<void> {
  const done = Promise.withResolvers<void>();
  using worker = new NullWorker(redis);
  // Take the leases first: this worker takes no offers, and otherwise one would stay for each tenant.
  const { tenancy, running } = await worker.hold(tenant, { onFinished: () => done.resolve() });
  await enqueueNothing(redis, tenant, 1, 1);
  await done.promise;
  tenancy.yield();
  await running;
}

/** Connections of a real worker, which do not grow with its sandboxes: its own, one for wake-ups, and those of the fleet's queues. */
async function workerConnections(host: Parameters<Scenario["run"]>[0]): Promise<number> {
  await using fleet = await BenchFleet.open(host);
  const redis = fleet.connect("blocking");
  const count = async () => Number(await info(redis, "clients", "connected_clients"));
  const job = await fleet.client().tenant("acme").exec("true", { idempotent: true }).enqueued();
  // The client waits for it on a connection of its own, from now on.
  const result = job.result;
  await sleep(1_000);
  const before = await count();
  await fleet.worker("whole-worker", { BERTH_WARM_COUNT: "0" });
  await result;
  return (await count()) - before;
}

async function holdOurs(redis: Redis, tenants: readonly string[]): Promise<() => Promise<void>> {
  const worker = new NullWorker(redis);
  const all = await Promise.all(tenants.map((tenant) => worker.hold(tenant)));
  return async () => {
    for (const { tenancy } of all) tenancy.yield();
    await Promise.all(all.map(({ running }) => running));
    worker[Symbol.dispose]();
  };
}

export async function useBareOnce(redis: Redis, tenant: string): Promise<void> {
  const connection = redis as unknown as ConnectionOptions;
  const queue = new Queue(tenant, { connection });
  const done = Promise.withResolvers<void>();
  const worker = new Worker(tenant, async () => ({}), { connection });
  worker.on("completed", () => done.resolve());
  await queue.add("nothing", {});
  await done.promise;
  await worker.close();
  await queue.close();
}

async function holdBare(redis: Redis, tenants: readonly string[]): Promise<() => Promise<void>> {
  const connection = redis as unknown as ConnectionOptions;
  const workers = tenants.map((tenant) => new Worker(tenant, async () => ({}), { connection }));
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  return async () => {
    await Promise.all(workers.map((worker) => worker.close()));
  };
}
