import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Berth } from "@berth/client";
import { BenchFleet, wentWell } from "./bench-fleet.ts";
import { percentile, timedMs } from "./measure.ts";
import { distributionChart } from "./plots/chart.ts";
import { type Findings, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "fairness";
const floodProgram = fileURLToPath(new URL("./flood.ts", import.meta.url));
const others = Array.from({ length: 9 }, (_, index) => `other-${index}`);

/** What nine tenants wait for one job a second each, alone and beside one that floods the fleet. */
export const fairness: Scenario = {
  name,
  about: "nine tenants with a job a second each, alone and beside a flood of one tenant",
  async run(host, plan): Promise<Findings> {
    const seconds = plan.quick ? 6 : 20;
    const flood = plan.quick ? 3_000 : 10_000;
    await using fleet = await BenchFleet.open(host);
    await fleet.worker("bench-worker", { BERTH_MAX_SANDBOXES: "16" });
    const berth = fleet.client();
    for (const id of [...others, "flooder"]) wentWell(await berth.tenant(id).exec("true"));
    const alone = await waits(berth, seconds);
    plan.onRound(1, 2);
    const flooder = await startFlood(fleet.url, flood);
    const beside = await waits(berth, seconds);
    plan.onRound(2, 2);
    const { unfinishedJobs } = await berth.scale();
    flooder.kill("SIGKILL");
    const all = (of: readonly (readonly number[])[]) => of.flat();
    const because = "the flood's own jobs run on the same two cores";
    const means = beside.map((one) => one.reduce((sum, wait) => sum + wait, 0) / one.length);
    return {
      rows: [50, 95].map((percent) =>
        row({
          scenario: name,
          metric: `others' wait p${percent}`,
          unit: "ms",
          better: "lower",
          ours: percentile(all(beside), percent),
          baseline: percentile(all(alone), percent),
          baselineName: "alone",
          samples: { ours: all(beside).length, baseline: all(alone).length },
          ...(percent === 95 ? { aim: { ratio: 0.5, text: "≤ 2 times", because } } : {}),
        }),
      ),
      charts: [
        distributionChart(
          { name, title: `Nine tenants' jobs, alone and beside a tenant that submits ${flood} jobs at once` },
          new Map([
            ["beside the flood", all(beside)],
            ["alone", all(alone)],
          ]),
        ),
      ],
      notes: [
        `Jain's index of the nine tenants' mean waits beside the flood: ${short(jain(means))} (1 is even)`,
        `the flood: ${flood} jobs at once, ${unfinishedJobs} of them unfinished at the end`,
      ],
    };
  },
};

/** Resolves when the whole flood is enqueued. */
async function startFlood(url: string, count: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, ["--conditions=@berth/source", floodProgram, url, String(count)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise<void>((resolve) => child.stdout.once("data", () => resolve()));
  return child;
}

/** Waits by tenant. Sends a job each second, also when the one before has not ended. */
async function waits(berth: Berth, seconds: number): Promise<number[][]> {
  return await Promise.all(
    others.map(async (id, index) => {
      await sleep(index * 100);
      const jobs: Promise<number>[] = [];
      for (let second = 0; second < seconds; second++) {
        jobs.push(timedMs(async () => wentWell(await berth.tenant(id).exec("true"))));
        await sleep(1_000);
      }
      return await Promise.all(jobs);
    }),
  );
}

function jain(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + value, 0);
  const squares = values.reduce((total, value) => total + value * value, 0);
  return (sum * sum) / (values.length * squares);
}
