import type { ChildProcess } from "node:child_process";
import { epoch, sandboxKey, sandboxProfile } from "@berth/protocol";
import { BenchFleet, wentWell } from "./bench-fleet.ts";
import type { BenchHost } from "./bench-host.ts";
import { inLanes, interleave, median, timedMs } from "./measure.ts";
import { type Findings, type Row, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "parked";
const tenants = 50;
const slots = 16;
const inFlight = 64;

/** The benefit of parked containers: the time of an adoption, and how many jobs one container start serves. */
export const parked: Scenario = {
  name,
  about: `adopting a parked container against create + start; ${tenants} tenants in ${slots} slots, ${inFlight} jobs in flight`,
  async run(host, plan): Promise<Findings> {
    const adoption = await adoptions(host, plan);
    const perRound = plan.quick ? 1_200 : 3_000;
    const without = await jobsPerStart(host, perRound, { BERTH_PARKED_COUNT: "0" });
    const kept = await jobsPerStart(host, perRound, {});
    const share: Row = row({
      scenario: name,
      metric: "jobs per container start",
      unit: "jobs",
      better: "higher",
      ours: kept.perStart,
      baseline: without.perStart,
      baselineName: "nothing parked",
      samples: { ours: perRound, baseline: perRound },
      aim: {
        ratio: 20 / without.perStart,
        text: "≥ 20 jobs",
        because: "each tenant's first job needs a container",
      },
    });
    return {
      rows: [adoption.row, share],
      notes: [
        adoption.note,
        `${perRound} jobs of ${tenants} tenants: ${kept.starts} container starts and ${short(kept.perSecond)} jobs/s with parked containers, ${without.starts} and ${short(without.perSecond)} without`,
      ],
    };
  },
};

async function adoptions(host: BenchHost, plan: Parameters<Scenario["run"]>[1]) {
  const key = sandboxKey.parse("parked");
  const request = { key, profile: sandboxProfile.parse({}), leaseMs: 10_000 };
  let held = await host.driver.start({ ...request, epoch: epoch.parse(1) });
  const { Config, HostConfig } = await (await host.containerOf(key)).inspect();
  const parking: number[] = [];
  let turn = 1;
  const samples = await interleave(
    [
      {
        name: "adopt",
        perRound: 4,
        sample: async () => {
          parking.push(await timedMs(() => held.park()));
          const ms = await timedMs(async () => {
            held = await host.driver.start({ ...request, epoch: epoch.parse(++turn) });
          });
          if (held.origin.how !== "adopted") throw new Error("the container was not adopted");
          return ms;
        },
      },
      {
        name: "create + start",
        perRound: 1,
        sample: async () => {
          const made = Promise.withResolvers<import("dockerode").Container>();
          const ms = await timedMs(async () => {
            const container = await host.docker.createContainer({ ...Config, HostConfig } as never);
            await container.start();
            made.resolve(container);
          });
          await (await made.promise).remove({ force: true, v: true });
          return ms;
        },
      },
    ],
    plan.quick ? 8 : 25,
    plan,
  );
  await held.stop();
  const mine = samples.get("adopt") ?? [];
  const baseline = samples.get("create + start") ?? [];
  return {
    row: row({
      scenario: name,
      metric: "adoption p50",
      unit: "ms",
      better: "lower",
      ours: median(mine),
      baseline: median(baseline),
      baselineName: "create + start",
      samples: { ours: mine.length, baseline: baseline.length },
      aim: {
        ratio: 30,
        because: "the engine attaches and looks at the image and the container, side by side",
      },
    }),
    note: `parking, with everything in it ended and verified, took ${short(median(parking))} ms`,
  };
}

async function jobsPerStart(host: BenchHost, jobs: number, settings: Readonly<Record<string, string>>) {
  await using fleet = await BenchFleet.open(host);
  const worker = await fleet.worker("bench-worker", { BERTH_MAX_SANDBOXES: String(slots), ...settings });
  const starts = countStarts(worker);
  const berth = fleet.client();
  const ms = await timedMs(() =>
    inLanes(jobs, inFlight, async (index) => {
      wentWell(await berth.tenant(`t${index % tenants}`).exec("true"));
    }),
  );
  return { starts: starts(), perStart: jobs / Math.max(1, starts()), perSecond: jobs / (ms / 1_000) };
}

/** Counts container starts in the worker's log, which has a line for each sandbox that it opens. */
function countStarts(worker: ChildProcess): () => number {
  let count = 0;
  let rest = "";
  worker.stdout?.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const { event, how } = JSON.parse(line) as { event?: string; how?: string };
      // A container of the warm pool counts as a start, too.
      if (event === "sandbox.opened" && (how === "started" || how === "warm")) count++;
    }
  });
  return () => count;
}
