import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BenchFleet, wentWell } from "./bench-fleet.ts";
import { hasDockerCli, hostSpawn } from "./engine-exec.ts";
import { type Contender, interleave, median, timedMs } from "./measure.ts";
import { type Findings, percentileRow, type Row, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "command-start";
const packer = fileURLToPath(new URL("../../infra/pack/main.ts", import.meta.url));

/** The aims for a call of the command, beyond Node's own start. */
const allowedMs = { exec: 200, version: 100 } as const;

/** The time of one call of the `berth` command, from its start to its exit, each in a new process. */
export const commandStart: Scenario = {
  name,
  about: "berth exec -- true from start to exit, as the npm package has it, warm",
  async run(host, plan): Promise<Findings> {
    await using fleet = await BenchFleet.open(host);
    await fleet.worker("bench-worker");
    wentWell(await fleet.client().tenant(name).exec("true"));
    const { id } = await host.containerOf(name);
    await using command = await packedCommand();
    const env = { ...process.env, REDIS_URL: fleet.url };
    const ofNode = (...args: string[]) => timedMs(() => hostSpawn(process.execPath, args, env));
    const contenders: Contender[] = [
      { name: "exec", perRound: 2, sample: () => ofNode(command.program, "exec", name, "--", "true") },
      { name: "version", perRound: 2, sample: () => ofNode(command.program, "version") },
      { name: "node", perRound: 2, sample: () => ofNode("-e", "0") },
    ];
    const cli = await hasDockerCli();
    if (cli)
      contenders.push({
        name: "docker exec",
        perRound: 2,
        sample: () => timedMs(() => hostSpawn("docker", ["exec", id, "true"])),
      });
    const samples = await interleave(contenders, plan.quick ? 8 : 30, plan);
    const of = (contender: string) => samples.get(contender) ?? [];
    const nodeMs = median(of("node"));
    const rows: Row[] = (["exec", "version"] as const).map((verb) =>
      row({
        ...{ scenario: name, metric: `${verb}, p50 beyond Node's start`, unit: "ms", better: "lower" },
        ours: median(of(verb)) - nodeMs,
        baseline: allowedMs[verb],
        baselineName: "what is allowed",
        samples: { ours: of(verb).length, baseline: of("node").length },
        aim: { ratio: 1, text: `≤ ${allowedMs[verb]} ms`, because: "the command's start, see the notes" },
      }),
    );
    if (cli)
      for (const percent of [50, 99])
        rows.push(
          percentileRow(percent, {
            ...{ scenario: name, ours: of("exec"), baseline: of("docker exec"), baselineName: "docker exec" },
          }),
        );
    const parts = (["exec", "version", "node"] as const).map(
      (contender) => `${contender} ${short(median(of(contender)))} ms`,
    );
    const left = cli ? [] : ["no docker command that works here: docker exec was left out"];
    return { rows, notes: [`p50, start to exit: ${parts.join(", ")}`, ...left] };
  },
};

/** Installs the command from its tarball into a directory. */
async function packedCommand(): Promise<{ readonly program: string } & AsyncDisposable> {
  const directory = await mkdtemp(join(tmpdir(), "berth-bench-command-"));
  const remove = () => rm(directory, { recursive: true, force: true });
  try {
    const packing = ["--conditions=@berth/source", packer, "--only", "berth", "--out", directory];
    await hostSpawn(process.execPath, packing);
    await hostSpawn("sh", ["-c", 'cd "$1" && tar xzf berth-*.tgz', "sh", directory]);
  } catch (error) {
    await remove();
    throw error;
  }
  return { program: join(directory, "package/lib/infra/setup/packaged.js"), [Symbol.asyncDispose]: remove };
}
