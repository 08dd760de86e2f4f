import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { succeeded } from "./bench-host.ts";
import { apiExec, hasDockerCli, hostSpawn } from "./engine-exec.ts";
import { type Contender, interleave, median, timedMs } from "./measure.ts";
import { type Findings, type Row, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "output";
const megabytes = 200;
const bytes = megabytes * 1_000_000;
/** Room for buffers in flight and garbage not yet collected; a worker that kept the output would grow by all of it. */
const flatMegabytes = 40;

/** How fast a command's output reaches the worker, and what it costs the worker to take it. */
export const output: Scenario = {
  name,
  about: `${megabytes} MB through stdout (cat of a file)`,
  async run(host, plan): Promise<Findings> {
    await using sandbox = await host.sandbox(name);
    const container = await host.containerOf(name);
    const cli = await hasDockerCli();
    succeeded(await sandbox.exec({ command: `head -c ${bytes} /dev/zero > big` }));
    const growth = { ours: [] as number[], api: [] as number[] };
    const contenders: Contender[] = [
      {
        name: "ours",
        perRound: 1,
        sample: () =>
          rate(() =>
            watchingMemory(growth.ours, async () => {
              let seen = 0;
              const onOutput = (chunk: { bytes: Uint8Array }) => {
                seen += chunk.bytes.length;
              };
              succeeded(await sandbox.exec({ argv: ["cat", "big"] }, { onOutput }));
              return seen;
            }),
          ),
      },
      {
        name: "API exec",
        perRound: 1,
        sample: () => rate(() => watchingMemory(growth.api, () => apiExec(container, ["cat", "big"]))),
      },
    ];
    if (cli) {
      contenders.push({
        name: "docker exec",
        perRound: 1,
        sample: () =>
          rate(async () => {
            await hostSpawn("docker", ["exec", container.id, "cat", "big"]);
            return bytes;
          }),
      });
    }
    const samples = await interleave(contenders, plan.quick ? 4 : 10, plan);
    const ours = samples.get("ours") ?? [];
    const rows: Row[] = ["API exec", "docker exec"].flatMap((baselineName) => {
      const baseline = samples.get(baselineName);
      if (!baseline) return [];
      return row({
        scenario: name,
        metric: `${megabytes} MB`,
        unit: "MB/s",
        better: "higher",
        ours: median(ours),
        baseline: median(baseline),
        baselineName,
        samples: { ours: ours.length, baseline: baseline.length },
      });
    });
    rows.push(memoryRow(growth));
    return {
      rows,
      notes: [
        "the API's output is counted, not taken apart; ours is checked, taken apart and acknowledged frame by frame",
        `most that the worker grew in one run: ours ${short(Math.max(...growth.ours))} MB, API exec ${short(Math.max(...growth.api))} MB`,
        ...(cli ? [] : ["no docker command that works here: docker exec was left out"]),
      ],
    };
  },
};

function memoryRow(growth: { readonly ours: readonly number[]; readonly api: readonly number[] }): Row {
  const measured = row({
    scenario: name,
    metric: "worker's memory grew by",
    unit: "MB",
    better: "lower",
    // Nothing at all would make a ratio of infinity.
    ours: Math.max(0.1, median(growth.ours)),
    baseline: Math.max(0.1, median(growth.api)),
    baselineName: "API exec",
    samples: { ours: growth.ours.length, baseline: growth.api.length },
  });
  const because = "garbage of the frames that is not collected in time, or output that is kept";
  return {
    ...measured,
    aim: { text: `flat: ≤ ${flatMegabytes} MB`, met: measured.ours <= flatMegabytes, because },
  };
}

async function rate(transfer: () => Promise<number>): Promise<number> {
  let moved = 0;
  const ms = await timedMs(async () => {
    moved = await transfer();
  });
  if (moved < bytes) throw new Error(`${moved} bytes came of ${bytes}`);
  return megabytes / (ms / 1000);
}

/** Adds the resident memory's highest point above where it began, in MB. */
async function watchingMemory<T>(growth: number[], run: () => Promise<T>): Promise<T> {
  collectGarbage();
  const before = process.memoryUsage.rss();
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 20);
  try {
    return await run();
  } finally {
    clearInterval(timer);
    peak = Math.max(peak, process.memoryUsage.rss());
    growth.push((peak - before) / 1_000_000);
  }
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;
