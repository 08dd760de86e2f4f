import { succeeded } from "./bench-host.ts";
import { apiExec, hostSpawn } from "./engine-exec.ts";
import { perSecond } from "./exec-throughput.ts";
import { interleave, median } from "./measure.ts";
import { type Point, powersOfTen } from "./plots/chart.ts";
import { type Findings, row, type Scenario } from "./scenario.ts";

const name = "parallelism";
const shell = ["sh", "-c", "true"] as const;
const lanes = [1, 2, 4, 8, 16, 32] as const;

/** Commands a second by how many are always under way. */
export const parallelism: Scenario = {
  name,
  about: `sh -c true in a warm sandbox, ${lanes[0]} to ${lanes.at(-1)} in parallel`,
  async run(host, plan): Promise<Findings> {
    await using sandbox = await host.sandbox(name);
    const container = await host.containerOf(name);
    const work = {
      Berth: { batch: 160, once: () => sandbox.exec({ command: "true" }).then(succeeded) },
      "spawn on the host": { batch: 160, once: () => hostSpawn(shell[0], shell.slice(1)) },
      "API exec": { batch: 16, once: () => apiExec(container, shell) },
    };
    const sampleName = (contender: string, count: number) => `${contender}, ${count}`;
    const samples = await interleave(
      lanes.flatMap((count) =>
        Object.entries(work).map(([contender, { batch, once }]) => ({
          name: sampleName(contender, count),
          perRound: 1,
          sample: () => perSecond(Math.max(batch, count), count, once),
        })),
      ),
      plan.quick ? 3 : 8,
      plan,
    );
    const rate = (contender: string, count: number) =>
      median(samples.get(sampleName(contender, count)) ?? []);
    const rounds = plan.quick ? 3 : 8;
    const series = Object.keys(work).map((contender) => ({
      name: contender,
      points: lanes.map((count): Point => [count, rate(contender, count)]),
    }));
    return {
      rows: lanes.map((count) =>
        row({
          scenario: name,
          metric: `${count} in parallel`,
          unit: "/s",
          better: "higher",
          ours: rate("Berth", count),
          baseline: rate("API exec", count),
          baselineName: "API exec",
          samples: { ours: rounds, baseline: rounds },
        }),
      ),
      notes: ["a sample is a batch: 160 commands of ours and on the host, 16 or more through the API"],
      charts: [
        {
          kind: "lines",
          name,
          title: "Commands per second in one sandbox",
          axis: "commands in parallel; both axes are logarithmic",
          x: { kind: "log", ticks: lanes.map((at) => ({ at, text: String(at) })) },
          y: powersOfTen(series.flatMap(({ points }) => points.map(([, perSec]) => perSec))),
          series,
        },
      ],
    };
  },
};
