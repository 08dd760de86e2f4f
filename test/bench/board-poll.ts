import type { Redis } from "@berth/redis";
import { BenchFleet } from "./bench-fleet.ts";
import { BenchGateway } from "./bench-gateway.ts";
import type { BenchHost } from "./bench-host.ts";
import { inLanes, interleave, median, timedMs } from "./measure.ts";
import { type Findings, type Plan, type Row, row } from "./scenario.ts";
import { short } from "./table.ts";

const many = 1_000;
/** The number of recently used sandboxes that the board shows. */
const few = 20;

/**
 * What Bull Board's page costs while a user looks at it: with a thousand known tenants against with a score. Both have a waiting
 * job each and no worker, so that nothing else asks Redis anything.
 */
export async function boardPoll(host: BenchHost, plan: Plan, scenario: string): Promise<Findings> {
  await using crowded = await BenchFleet.open(host);
  await using quiet = await BenchFleet.open(host);
  await using ofCrowded = await opened(crowded, many);
  await using ofQuiet = await opened(quiet, few);
  const polls = await interleave(
    [
      { name: "crowded", perRound: 5, sample: () => timedMs(() => ofCrowded.pollBoard()) },
      { name: "quiet", perRound: 5, sample: () => timedMs(() => ofQuiet.pollBoard()) },
    ],
    plan.quick ? 4 : 20,
    plan,
  );
  const [ours = [], baseline = []] = [polls.get("crowded"), polls.get("quiet")];
  const asked = [await commandsOf(crowded, ofCrowded), await commandsOf(quiet, ofQuiet)] as const;
  const line = (unit: string, values: readonly [number, number], samples: Row["samples"]): Row =>
    row({
      scenario,
      metric: `a poll of the board, ${many.toLocaleString("en")} tenants`,
      unit,
      better: "lower",
      ours: values[0],
      baseline: values[1],
      baselineName: `${few} tenants`,
      samples,
    });
  return {
    rows: [
      line("ms", [median(ours), median(baseline)], { ours: ours.length, baseline: baseline.length }),
      line("commands", asked, { ours: 1, baseline: 1 }),
    ],
    notes: [
      `the board shows ${await ofCrowded.pollBoard()} queues; ${short(asked[0])} commands of Redis each time`,
    ],
  };
}

async function opened(fleet: BenchFleet, tenants: number): Promise<BenchGateway> {
  const berth = fleet.client();
  await inLanes(tenants, 16, (index) => berth.tenant(`known-${index}`).exec("true").enqueued());
  const gateway = await BenchGateway.open(fleet.url);
  await gateway.logIn();
  await gateway.pollBoard();
  return gateway;
}

/** Redis' own count of commands over several polls. It includes the gateway's periodic calls. */
async function commandsOf(fleet: BenchFleet, gateway: BenchGateway): Promise<number> {
  const redis = fleet.connect();
  const polls = 10;
  const before = await processed(redis);
  for (let poll = 0; poll < polls; poll++) await gateway.pollBoard();
  return ((await processed(redis)) - before - 1) / polls;
}

async function processed(redis: Redis): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await redis.info("stats"))?.[1]);
}
