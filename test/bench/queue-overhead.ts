import type { Redis } from "@berth/redis";
import { type ConnectionOptions, Queue, Worker } from "bullmq";
import { BenchFleet } from "./bench-fleet.ts";
import { interleave, median } from "./measure.ts";
import { enqueueNothing, NullWorker } from "./null-worker.ts";
import { aimedRow, type Findings, row, type Scenario } from "./scenario.ts";

const name = "queue-overhead";
const batch = 1_000;
const parallel = 16;

/** The cost of a job that does nothing: Berth's worker against a bare BullMQ worker, each in this process. */
export const queueOverhead: Scenario = {
  name,
  about: `${batch} waiting jobs that do nothing, ${parallel} at once`,
  async run(host, plan): Promise<Findings> {
    await using fleet = await BenchFleet.open(host);
    const redis = fleet.connect("blocking");
    const nodeMs: number[] = [];
    const samples = await interleave(
      [
        { name: "ours", perRound: 1, sample: () => ours(redis, nodeMs) },
        { name: "bare BullMQ", perRound: 1, sample: () => bare(redis) },
      ],
      plan.quick ? 4 : 12,
      plan,
    );
    const mine = samples.get("ours") ?? [];
    const baseline = samples.get("bare BullMQ") ?? [];
    const because =
      "a bare worker makes one call per job; ours makes three more: fetching it apart, its begin, and its terminal record, the last two compared with the lease";
    return {
      rows: [
        row({
          scenario: name,
          metric: "jobs",
          unit: "/s",
          better: "higher",
          ours: median(mine),
          baseline: median(baseline),
          baselineName: "bare BullMQ",
          samples: { ours: mine.length, baseline: baseline.length },
          aim: { ratio: 0.8, because },
        }),
        aimedRow({
          scenario: name,
          metric: "a job",
          unit: "ms of Node",
          ours: median(nodeMs),
          atMost: 0.15,
          samples: nodeMs.length,
          because: "the whole process: the tenancy, its ports, and speaking with Redis",
        }),
      ],
      notes: [because],
    };
  },
};

let made = 0;

/** Adds the CPU time that this process spent on a job. */
async function ours(redis: Redis, nodeMs: number[]): Promise<number> {
  const tenant = `${name}-${made++}`;
  await enqueueNothing(redis, tenant, batch, parallel);
  let finished = 0;
  const all = Promise.withResolvers<void>();
  const onFinished = () => {
    if (++finished === batch) all.resolve();
  };
  const startedMs = performance.now();
  const before = process.cpuUsage();
  using worker = new NullWorker(redis);
  const { tenancy, running } = await worker.hold(tenant, { parallel, onFinished });
  await all.promise;
  const perSecond = batch / ((performance.now() - startedMs) / 1_000);
  const { user, system } = process.cpuUsage(before);
  nodeMs.push((user + system) / 1_000 / batch);
  tenancy.yield();
  await running;
  return perSecond;
}

async function bare(redis: Redis): Promise<number> {
  const queueName = `bare-${made++}`;
  const connection = redis as unknown as ConnectionOptions;
  const queue = new Queue(queueName, { connection });
  await queue.addBulk(Array.from({ length: batch }, () => ({ name: "stat", data: { path: "" } })));
  let finished = 0;
  const all = Promise.withResolvers<void>();
  const startedMs = performance.now();
  const worker = new Worker(queueName, async () => ({}), {
    connection,
    concurrency: parallel,
    removeOnComplete: { age: 3_600, count: 100 },
  });
  worker.on("completed", () => {
    if (++finished === batch) all.resolve();
  });
  await all.promise;
  const perSecond = batch / ((performance.now() - startedMs) / 1_000);
  await worker.close();
  await queue.close();
  return perSecond;
}
