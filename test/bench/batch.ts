import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BenchFleet } from "./bench-fleet.ts";
import { BenchGateway } from "./bench-gateway.ts";
import { interleave, median } from "./measure.ts";
import { type Findings, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "batch";
const slots = 16;
const sizes = { whole: { jobs: 10_000, tenants: 50 }, quick: { jobs: 1_000, tenants: 20 } } as const;
const program = fileURLToPath(new URL("../../apps/cli/src/main.ts", import.meta.url));
let made = 0;

/** Runs a file of jobs with `berth batch run`, through a gateway and straight to Redis. */
export const batch: Scenario = {
  name,
  about: `berth batch run through a gateway against straight to Redis; many tenants on ${slots} slots`,
  async run(host, plan): Promise<Findings> {
    const { jobs, tenants } = plan.quick ? sizes.quick : sizes.whole;
    await using fleet = await BenchFleet.open(host);
    await fleet.worker("bench-worker", { BERTH_MAX_SANDBOXES: String(slots) });
    await using gateway = await BenchGateway.open(fleet.url);
    const directory = await mkdtemp(join(tmpdir(), "berth-bench-batch-"));
    try {
      const file = join(directory, "jobs.jsonl");
      await writeFile(file, linesFor(jobs, tenants));
      const rate = async (env: Readonly<Record<string, string>>) => jobs / (await runBatch(file, env));
      const samples = await interleave(
        [
          { name: "gateway", perRound: 1, sample: () => rate(gateway.environment) },
          { name: "Redis", perRound: 1, sample: () => rate({ REDIS_URL: fleet.url }) },
        ],
        plan.quick ? 2 : 3,
        plan,
      );
      const through = samples.get("gateway") ?? [];
      const direct = samples.get("Redis") ?? [];
      const because =
        "the gateway is one more process on this machine's cores, and reads and writes each job once more";
      return {
        rows: [
          row({
            scenario: name,
            metric: `${jobs} jobs, ${tenants} tenants`,
            unit: "/s",
            better: "higher",
            ours: median(through),
            baseline: median(direct),
            baselineName: "straight to Redis",
            samples: { ours: through.length, baseline: direct.length },
            aim: { ratio: 0.7, because },
          }),
        ],
        notes: [
          `each sample is a whole \`berth batch run\`, its start included; through the gateway ${through.map(short).join(", ")} /s, straight ${direct.map(short).join(", ")} /s`,
        ],
      };
    } finally {
      await rm(directory, { recursive: true });
    }
  },
};

function linesFor(jobs: number, tenants: number): string {
  const request = { kind: "exec", command: "true" };
  const line = (index: number) => JSON.stringify({ tenant: `${name}-${index % tenants}`, request });
  return Array.from({ length: jobs }, (_, index) => `${line(index)}\n`).join("");
}

async function runBatch(file: string, env: Readonly<Record<string, string>>): Promise<number> {
  const beganMs = performance.now();
  const args = ["batch", "run", file, "--id", `bench-${made++}`, "--out", `${file}.${made}.results`];
  const run = spawn(process.execPath, ["--conditions=@berth/source", program, ...args], {
    env: { PATH: process.env.PATH ?? "", ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  run.stderr.on("data", (chunk: Buffer) => {
    said += chunk;
  });
  const [code] = await once(run, "close");
  if (code !== 0) throw new Error(`the batch ended with ${code}: ${said}`);
  return (performance.now() - beganMs) / 1_000;
}
