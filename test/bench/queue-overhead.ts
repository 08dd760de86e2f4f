import { Enqueuer } from "@berth/client";
import { Leases } from "@berth/lease";
import { type Epoch, execLimits, type JobResult, job, sandboxKey, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { SandboxDriver } from "@berth/sandbox";
import { JobEvents, Staging } from "@berth/streams";
import { type SandboxPort, Tenancy } from "@berth/tenancy";
import { type ConnectionOptions, Queue, Worker } from "bullmq";
import { systemClock } from "../../apps/worker/src/clock.ts";
import { readConfig } from "../../apps/worker/src/config.ts";
import { tenancyPorts } from "../../apps/worker/src/tenancy-ports.ts";
import { Turns } from "../../apps/worker/src/turns.ts";
import { BenchFleet } from "./bench-fleet.ts";
import { interleave, median } from "./measure.ts";
import { type Findings, row, type Scenario } from "./scenario.ts";

const name = "queue-overhead";
const batch = 1_000;
const parallel = 16;

/** A sandbox in which everything is done at once: what remains is the queue's, the lease's and the streams'. */
const doesNothing: SandboxPort = {
  open: async () => ({
    limits: execLimits.parse({}),
    run: async (): Promise<JobResult> => ({
      outcome: { kind: "done" },
      value: {},
      timing: { wallMs: 0, cpuMs: 0 },
    }),
    destroy: async () => {},
    done: () => {},
  }),
  close: async () => {},
};

/** What a job costs that does nothing: ours against a bare BullMQ worker, each in this process. */
export const queueOverhead: Scenario = {
  name,
  about: `${batch} waiting jobs that do nothing, ${parallel} at once`,
  async run(host, plan): Promise<Findings> {
    await using fleet = await BenchFleet.open(host);
    const redis = fleet.connect("blocking");
    const samples = await interleave(
      [
        { name: "ours", perRound: 1, sample: () => ours(redis) },
        { name: "bare BullMQ", perRound: 1, sample: () => bare(redis) },
      ],
      plan.quick ? 4 : 12,
      plan,
    );
    const mine = samples.get("ours") ?? [];
    const baseline = samples.get("bare BullMQ") ?? [];
    const because =
      "a bare worker makes one call per job; ours makes three more, for the begin, the terminal record and the lease's say in both";
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
      ],
      notes: [because],
    };
  },
};

let made = 0;

async function ours(redis: Redis): Promise<number> {
  const tenant = `${name}-${made++}`;
  const key = sandboxKey.parse(tenant);
  const enqueuer = new Enqueuer(redis);
  const request = { kind: "stat", path: "" } as const;
  await Promise.all(
    Array.from({ length: batch }, (_, index) =>
      enqueuer.enqueue(
        job.parse({ version: 1, id: `${tenant}-${index}`, tenant, session: `s${index % parallel}`, request }),
      ),
    ),
  );
  await enqueuer.close();
  const leases = new Leases(redis);
  const taken = await leases.take(key, { worker: workerId.parse("bench"), instance: "bench" }, 60_000);
  const read = readConfig({ BERTH_LEASE_MS: "60000" });
  if (!taken.taken || "problems" in read) throw new Error("the bench's own sandbox could not be taken");
  let finished = 0;
  const all = Promise.withResolvers<void>();
  const ports = tenancyPorts(
    {
      config: read.config,
      instance: "bench",
      redis,
      leases,
      events: new JobEvents(redis),
      staging: new Staging(redis),
      driver: undefined as unknown as SandboxDriver,
      turns: new Turns(1_000),
      clock: systemClock,
      report: ({ event }) => {
        if (event === "job.finished" && ++finished === batch) all.resolve();
      },
    },
    key,
    taken.epoch as Epoch,
  );
  const limits = { leaseMs: 60_000, parallel, idleMs: 0, maxAgeMs: 0 } as const;
  const tenancy = new Tenancy(
    { key, epoch: taken.epoch, ...limits, onNoSandbox: "refuse", removeOnStop: true },
    { ...ports, sandbox: doesNothing },
  );
  const startedMs = performance.now();
  const running = tenancy.run();
  await all.promise;
  const perSecond = batch / ((performance.now() - startedMs) / 1_000);
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
