import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type ConnectionOptions, Queue, QueueEvents } from "bullmq";
import { BenchFleet, wentWell } from "./bench-fleet.ts";
import { median } from "./measure.ts";
import { aimedRow, type Findings, row, type Scenario } from "./scenario.ts";

const name = "failover";
const bareProgram = fileURLToPath(new URL("./bare-worker.ts", import.meta.url));

/** From kill -9 of the worker that runs a job to the job's result from another worker. */
export const failover: Scenario = {
  name,
  about: "kill -9 in the middle of a job that may run again, until its result",
  async run(host, plan): Promise<Findings> {
    const rounds = plan.quick ? 1 : 3;
    // Berth takes a tenth of the baseline's time, so it can have more samples.
    const oursPerRound = 4;
    const mine: number[] = [];
    const bare: number[] = [];
    for (let round = 0; round < rounds; round++) {
      plan.signal.throwIfAborted();
      for (let i = 0; i < oursPerRound; i++) mine.push(await ours(host, round * oursPerRound + i));
      bare.push(await bareBull(host));
      plan.onRound(round + 1, rounds);
    }
    return {
      rows: [
        row({
          scenario: name,
          metric: "kill -9 to result",
          unit: "ms",
          better: "lower",
          ours: median(mine),
          baseline: median(bare),
          baselineName: "bare BullMQ",
          samples: { ours: mine.length, baseline: bare.length },
        }),
        aimedRow({
          ...{ scenario: name, metric: "kill -9 to result", unit: "ms", ours: median(mine), atMost: 5_000 },
          samples: mine.length,
          because: "up to 5 s are the dead worker's lease",
        }),
      ],
      charts: [
        {
          kind: "dots",
          name,
          title: "kill -9 of the worker in the middle of a job, until the job's result",
          axis: "one dot for each time; the killed worker's lease of 5 s is included",
          series: [
            { name: "Berth", samplesMs: mine },
            { name: "bare BullMQ, its default settings", samplesMs: bare },
          ],
        },
      ],
      notes: [
        "ours with the default lease of 5 s and sweep of 2 s, the sandbox's cold start included; BullMQ with its default lock of 30 s and stalled check of 30 s",
      ],
    };
  },
};

async function ours(host: Parameters<Scenario["run"]>[0], round: number): Promise<number> {
  await using fleet = await BenchFleet.open(host);
  const holder = await fleet.worker("holder");
  const tenant = fleet.client().tenant(`${name}-${round}`);
  wentWell(await tenant.exec("true"));
  const command = "if test -e begun; then echo again; else touch begun; sleep 60; fi";
  const job = await tenant.exec(command, { idempotent: true }).enqueued();
  for await (const event of job.events()) if (event.type === "started") break;
  await fleet.worker("other");
  const killedMs = performance.now();
  holder.kill("SIGKILL");
  wentWell(await job.result);
  return performance.now() - killedMs;
}

async function bareBull(host: Parameters<Scenario["run"]>[0]): Promise<number> {
  await using fleet = await BenchFleet.open(host);
  const connection = fleet.connect("blocking") as unknown as ConnectionOptions;
  const queue = new Queue("bare", { connection });
  const events = new QueueEvents("bare", { connection });
  const children: ChildProcess[] = [];
  try {
    await events.waitUntilReady();
    const job = await queue.add("nothing", {});
    children.push(await bareWorker(fleet, "hold", "active"));
    children.push(await bareWorker(fleet, "finish", "ready"));
    const killedMs = performance.now();
    children[0]?.kill("SIGKILL");
    await job.waitUntilFinished(events);
    return performance.now() - killedMs;
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await events.close();
    await queue.close();
  }
}

async function bareWorker(fleet: BenchFleet, what: string, until: string): Promise<ChildProcess> {
  const socket = fleet.url.slice("unix://".length);
  const child = spawn(process.execPath, [bareProgram, socket, "bare", what], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise<void>((resolve) => {
    child.stdout.on("data", (chunk: Buffer) => {
      if (chunk.includes(until)) resolve();
    });
  });
  return child;
}
