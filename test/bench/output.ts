import { hasDockerCli, hostSpawn } from "./engine-exec.ts";
import { type Contender, interleave, median, timedMs } from "./measure.ts";
import { memoryGrowth } from "./output-memory.ts";
import { type Findings, type Row, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";
import { makeBig, transferApi, transferMegabytes, transferOurs } from "./transfer.ts";

const name = "output";
/** The aim for the worker's growth after the first transfer. A worker that kept output would grow by all of it. */
const flatMegabytes = 32;

/** How fast a command's output reaches the worker, and what it costs the worker's memory. */
export const output: Scenario = {
  name,
  about: `${transferMegabytes} MB through stdout (cat of a file)`,
  async run(host, plan): Promise<Findings> {
    await using sandbox = await host.sandbox(name);
    const container = await host.containerOf(name);
    const cli = await hasDockerCli();
    await makeBig(sandbox);
    const cost = { ours: [] as number[], api: [] as number[] };
    const contenders: Contender[] = [
      { name: "ours", perRound: 1, sample: () => rate(() => transferOurs(sandbox), cost.ours) },
      { name: "API exec", perRound: 1, sample: () => rate(() => transferApi(container), cost.api) },
    ];
    if (cli) {
      const docker = () => hostSpawn("docker", ["exec", container.id, "cat", "big"]);
      contenders.push({ name: "docker exec", perRound: 1, sample: () => rate(docker) });
    }
    const samples = await interleave(contenders, plan.quick ? 4 : 10, plan);
    const ours = samples.get("ours") ?? [];
    const rows: Row[] = ["API exec", "docker exec"].flatMap((baselineName) => {
      const baseline = samples.get(baselineName);
      if (!baseline) return [];
      return row({
        scenario: name,
        metric: `${transferMegabytes} MB`,
        unit: "MB/s",
        better: "higher",
        ours: median(ours),
        baseline: median(baseline),
        baselineName,
        samples: { ours: ours.length, baseline: baseline.length },
      });
    });
    plan.signal.throwIfAborted();
    const transfers = plan.quick ? 3 : 6;
    const growth = {
      ours: await memoryGrowth({ place: host.place, way: "ours", transfers }),
      api: await memoryGrowth({ place: host.place, way: "api", transfers }),
    };
    rows.push(...memoryRows(growth));
    return {
      rows,
      notes: [
        `cpu time of the worker for ${transferMegabytes} MB: ours ${short(median(cost.ours))} ms, API exec ${short(median(cost.api))} ms`,
        "the API's output is counted, not taken apart; ours is checked, taken apart, kept in part and acknowledged",
        "memory is the worker's highest resident size above its start, each way in a process of its own",
        ...(cli ? [] : ["no docker command that works here: docker exec was left out"]),
      ],
    };
  },
};

function memoryRows(growth: { readonly ours: readonly number[]; readonly api: readonly number[] }): Row[] {
  const after = (transfers: number): Row =>
    row({
      scenario: name,
      metric: `memory after ${transfers * transferMegabytes} MB`,
      unit: "MB",
      better: "lower",
      ours: growth.ours[transfers - 1] ?? 0,
      baseline: growth.api[transfers - 1] ?? 0,
      baselineName: "API exec",
      samples: { ours: 1, baseline: 1 },
    });
  const first = after(1);
  const last = after(growth.ours.length);
  const met = last.ours - first.ours <= flatMegabytes;
  const because =
    "the worker's memory goes on rising with the bytes that pass: something keeps them, or the collector lags behind";
  return [first, { ...last, aim: { text: `≤ ${flatMegabytes} MB more`, met, because } }];
}

async function rate(transfer: () => Promise<void>, cpuMs?: number[]): Promise<number> {
  const before = process.cpuUsage();
  const ms = await timedMs(transfer);
  const { user, system } = process.cpuUsage(before);
  cpuMs?.push((user + system) / 1000);
  return transferMegabytes / (ms / 1000);
}
