import type { Sandbox } from "@berth/sandbox";
import { succeeded } from "./bench-host.ts";
import { apiExec, hostSpawn } from "./engine-exec.ts";
import { type Contender, inLanes, interleave, median, timedMs } from "./measure.ts";
import { type Findings, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "exec-throughput";
const shell = ["sh", "-c", "true"] as const;
const lanes = 8;
const batch = 400;
const apiBatch = 24;

/** How many commands a second one sandbox runs when eight are always under way. */
export const execThroughput: Scenario = {
  name,
  about: `sh -c true in a warm sandbox, ${lanes} in parallel`,
  async run(host, plan): Promise<Findings> {
    await using sandbox = await host.sandbox(name);
    const container = await host.containerOf(name);
    const cost = new CpuCost(sandbox);
    const contenders: Contender[] = [
      {
        name: "ours",
        perRound: 1,
        sample: () =>
          cost.during(() => perSecond(batch, lanes, () => sandbox.exec({ command: "true" }).then(succeeded))),
      },
      {
        name: "spawn on the host",
        perRound: 1,
        sample: () => perSecond(batch, lanes, () => hostSpawn(shell[0], shell.slice(1))),
      },
      {
        name: "API exec",
        perRound: 1,
        sample: () => perSecond(apiBatch, lanes, () => apiExec(container, shell)),
      },
    ];
    const samples = await interleave(contenders, plan.quick ? 4 : 12, plan);
    const rates = samples.get("ours") ?? [];
    const because = `a command costs ${short(median(cost.sandboxMs))} ms of the sandbox's cpu time, of which its profile allows one core, and ${short(median(cost.workerMs))} ms of the worker's`;
    const rows = ["API exec", "spawn on the host"].map((baselineName) => {
      const baseline = samples.get(baselineName) ?? [];
      return row({
        scenario: name,
        metric: `${lanes} in parallel`,
        unit: "/s",
        better: "higher",
        ours: median(rates),
        baseline: median(baseline),
        baselineName,
        samples: { ours: rates.length, baseline: baseline.length },
        ...(baselineName === "API exec" ? { aim: { ratio: 70, because } } : {}),
      });
    });
    return {
      rows,
      notes: [
        because,
        `a sample is a batch: ${batch} commands of ours and on the host, ${apiBatch} through the API`,
      ],
    };
  },
};

export async function perSecond(
  count: number,
  inParallel: number,
  once: () => Promise<unknown>,
): Promise<number> {
  return count / ((await timedMs(() => inLanes(count, inParallel, once))) / 1000);
}

/** Cpu time that each command of a batch took, in the sandbox and in this process. */
class CpuCost {
  readonly sandboxMs: number[] = [];
  readonly workerMs: number[] = [];
  readonly #sandbox: Sandbox;

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
  }

  async during(run: () => Promise<number>): Promise<number> {
    const before = await this.#sandbox.stats();
    const worker = process.cpuUsage();
    const value = await run();
    const { user, system } = process.cpuUsage(worker);
    this.workerMs.push((user + system) / 1000 / batch);
    this.sandboxMs.push(((await this.#sandbox.stats()).cpuMs - before.cpuMs) / batch);
    return value;
  }
}
