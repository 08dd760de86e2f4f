import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "@berth/redis";
import { BenchFleet } from "./bench-fleet.ts";
import type { BenchHost } from "./bench-host.ts";
import { type Footprint, footprint, useBareOnce, useOnce } from "./idle-cost.ts";
import { inLanes } from "./measure.ts";
import { type Point, powersOfTen, type Scale } from "./plots/chart.ts";
import { type Findings, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "growth";
const counts = [10, 100, 1_000, 10_000] as const;
const x: Scale = {
  kind: "log",
  ticks: counts.map((at) => ({ at, text: `${at.toLocaleString("en")} tenants` })),
};

/** What Redis needs for ten to ten thousand tenants that have each run one job and are idle. */
export const growth: Scenario = {
  name,
  about: `Redis with ${counts[0]} to ${counts.at(-1)} idle tenants and one worker; against as many bare BullMQ queues`,
  async run(host, plan): Promise<Findings> {
    const lookMs = plan.quick ? 5_000 : 20_000;
    const total = counts.length * 2;
    const mine = await series(host, true, useOnce, lookMs, plan.signal, (n) => plan.onRound(n, total));
    const bare = await series(host, false, useBareOnce, 100, plan.signal, (n) =>
      plan.onRound(counts.length + n, total),
    );
    const points = (looks: readonly Footprint[], of: (look: Footprint) => number) =>
      counts.map((count, index): Point => [count, of(looks[index] as Footprint)]);
    const megabytes = [mine, bare].map((looks) => points(looks, ({ bytes }) => bytes / 1e6));
    const commands = points(mine, ({ commandsPerSecond }) => commandsPerSecond);
    const [ours = [], theirs = []] = megabytes;
    return {
      rows: counts.map((count, index) =>
        row({
          scenario: name,
          metric: `${count} tenants`,
          unit: "MB",
          better: "lower",
          ours: ours[index]?.[1] ?? 0,
          baseline: theirs[index]?.[1] ?? 0,
          baselineName: "bare BullMQ",
          samples: { ours: 1, baseline: 1 },
        }),
      ),
      notes: commands.map(
        ([count, perSecond]) => `${count} tenants, one worker: ${short(perSecond)} commands/s while idle`,
      ),
      charts: [
        {
          kind: "lines",
          name: `${name}-memory`,
          title: "Redis memory of tenants that have each run one job",
          axis: "megabytes by tenants; both axes are logarithmic; events and indexes are kept for a day",
          x,
          y: powersOfTen(megabytes.flat().map(([, value]) => value)),
          series: [
            { name: "Berth", points: ours },
            { name: "one bare BullMQ queue each", points: theirs },
          ],
        },
        {
          kind: "lines",
          name: `${name}-commands`,
          title: "Redis commands per second while all tenants are idle",
          axis: "of one worker, those within scripts included; both axes are logarithmic",
          x,
          y: powersOfTen([1, ...commands.map(([, value]) => value)]),
          series: [{ name: "Berth", points: commands }],
        },
      ],
    };
  },
};

/** Measures Redis after each number of tenants. */
async function series(
  host: BenchHost,
  withWorker: boolean,
  use: (redis: Redis, tenant: string) => Promise<void>,
  lookMs: number,
  signal: AbortSignal,
  onLook: (done: number) => void,
): Promise<Footprint[]> {
  await using fleet = await BenchFleet.open(host);
  if (withWorker) await fleet.worker("bench-worker");
  const redis = fleet.connect("blocking");
  const looks: Footprint[] = [];
  let known = 0;
  for (const count of counts) {
    const from = known;
    await inLanes(count - from, 8, async (index) => {
      signal.throwIfAborted();
      await use(redis, `known-${from + index}`);
    });
    known = count;
    // Wait for the work that the last jobs leave, so that only idling is measured.
    await sleep(2_000);
    looks.push(await footprint(redis, lookMs));
    onLook(looks.length);
  }
  return looks;
}
