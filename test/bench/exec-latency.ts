import { succeeded } from "./bench-host.ts";
import { apiExec, hasDockerCli, hostSpawn } from "./engine-exec.ts";
import { type Contender, interleave, median, timedMs } from "./measure.ts";
import { distributionChart } from "./plots/chart.ts";
import { type Findings, percentileRow, type Row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "exec-latency";
const shell = ["sh", "-c", "true"] as const;

/** The latency of the smallest command in a warm sandbox. */
export const execLatency: Scenario = {
  name,
  about: "sh -c true in a warm sandbox, one at a time",
  async run(host, plan): Promise<Findings> {
    await using sandbox = await host.sandbox(name);
    const container = await host.containerOf(name);
    const cli = await hasDockerCli();
    const insideMs: number[] = [];
    const contenders: Contender[] = [
      {
        name: "ours",
        perRound: 20,
        sample: () =>
          timedMs(async () => insideMs.push(succeeded(await sandbox.exec({ command: "true" })).wallMs)),
      },
      {
        name: "spawn on the host",
        perRound: 20,
        sample: () => timedMs(() => hostSpawn(shell[0], shell.slice(1))),
      },
      // init answers without starting a process, so this is the round trip alone.
      { name: "round trip", perRound: 20, sample: () => timedMs(() => sandbox.stats()) },
      { name: "API exec", perRound: 5, sample: () => timedMs(() => apiExec(container, shell)) },
    ];
    if (cli) {
      contenders.push({
        name: "docker exec",
        perRound: 2,
        sample: () => timedMs(() => hostSpawn("docker", ["exec", container.id, ...shell])),
      });
    }
    const samples = await interleave(contenders, plan.quick ? 12 : 40, plan);
    const ours = samples.get("ours") ?? [];
    const parts = `p50 ${short(median(ours))} ms: ${short(median(insideMs))} ms from request to the command's end inside, the way there and back ${short(median(samples.get("round trip") ?? []))} ms (a call that starts no process)`;
    const rows: Row[] = [];
    for (const baselineName of ["API exec", "docker exec", "spawn on the host"]) {
      const baseline = samples.get(baselineName);
      if (!baseline) continue;
      for (const percent of [50, 99]) {
        const aim = percent === 99 ? undefined : aims[baselineName];
        rows.push(
          percentileRow(percent, {
            ...{ scenario: name, ours, baseline, baselineName },
            ...(aim === undefined ? {} : { aim: { ratio: aim, because: parts } }),
          }),
        );
      }
    }
    return {
      rows,
      notes: [parts, ...(cli ? [] : ["no docker command that works here: docker exec was left out"])],
      charts: [
        distributionChart(
          { name, title: "sh -c true in a warm sandbox: how long one command takes" },
          new Map([
            ["Berth", ours],
            ...[...samples].filter(([contender]) => contender !== "ours" && contender !== "round trip"),
          ]),
        ),
      ],
    };
  },
};

const aims: Readonly<Record<string, number>> = { "API exec": 40, "spawn on the host": 1 };
