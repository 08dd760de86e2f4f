import type Docker from "dockerode";
import { type BenchHost, succeeded } from "./bench-host.ts";
import { apiExec } from "./engine-exec.ts";
import { type Contender, interleave, median, timedMs } from "./measure.ts";
import { type Findings, type Row, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "cold-start";
/** The aim: at most this multiple of the baseline's time. */
const aimedShare = 1.15;

/** From no container to the first exit code. The baseline only creates and starts the same container. */
export const coldStart: Scenario = {
  name,
  about: "driver.start() and a first sh -c true, in a new workspace each time",
  async run(host, plan): Promise<Findings> {
    const spec = await specOfOurs(host);
    const phases: Record<"start" | "exec" | "create" | "engineStart" | "image" | "name", number[]> = {
      start: [],
      exec: [],
      create: [],
      engineStart: [],
      image: [],
      name: [],
    };
    let made = 0;
    const contenders: Contender[] = [
      { name: "ours", perRound: 1, sample: () => ours(host, `cold-${made++}`, phases) },
      { name: "create + start", perRound: 1, sample: () => bare(host, spec, phases, false) },
      { name: "create + start + API exec", perRound: 1, sample: () => bare(host, spec, phases, true) },
      {
        name: "looks",
        perRound: 1,
        sample: async () => {
          phases.image.push(await timedMs(() => host.docker.getImage(spec.Image ?? "").inspect()));
          phases.name.push(
            await timedMs(() =>
              host.docker
                .getContainer("berth-no-such")
                .inspect()
                .catch(() => {}),
            ),
          );
          return 0;
        },
      },
    ];
    const samples = await interleave(contenders, plan.quick ? 6 : 20, plan);
    const of = (phase: keyof typeof phases) => `${short(median(phases[phase]))} ms`;
    const parts = `driver.start() took ${of("start")} and the first command ${of("exec")}; bare create takes ${of("create")} and start ${of("engineStart")}, and ours adds a look at the image (${of("image")}), one for a survivor (${of("name")}), the workspace, the attaching and the hello`;
    const mine = samples.get("ours") ?? [];
    const compare = (baselineName: string, aimed: boolean): Row => {
      const baseline = samples.get(baselineName) ?? [];
      return row({
        scenario: name,
        metric: "to the first exit code",
        unit: "ms",
        better: "lower",
        ours: median(mine),
        baseline: median(baseline),
        baselineName,
        samples: { ours: mine.length, baseline: baseline.length },
        ...(aimed ? { aim: { ratio: 1 / aimedShare, text: `time ≤ ${aimedShare}×`, because: parts } } : {}),
      });
    };
    const rows = [compare("create + start", true), compare("create + start + API exec", false)];
    const share = median(mine) / median(samples.get("create + start") ?? []);
    return { rows, notes: [`ours takes ${share.toFixed(2)} times as long as bare create + start`, parts] };
  },
};

async function ours(
  host: BenchHost,
  key: string,
  phases: { readonly start: number[]; readonly exec: number[] },
): Promise<number> {
  const startedMs = performance.now();
  await using sandbox = await host.sandbox(key);
  const readyMs = performance.now();
  succeeded(await sandbox.exec({ command: "true" }));
  const endedMs = performance.now();
  phases.start.push(readyMs - startedMs);
  phases.exec.push(endedMs - readyMs);
  return endedMs - startedMs;
}

async function bare(
  host: BenchHost,
  spec: Docker.ContainerCreateOptions,
  phases: { readonly create: number[]; readonly engineStart: number[] },
  withExec: boolean,
): Promise<number> {
  const startedMs = performance.now();
  const container = await host.docker.createContainer(spec);
  const createdMs = performance.now();
  await container.start();
  const runningMs = performance.now();
  if (withExec) await apiExec(container, ["sh", "-c", "true"]);
  const endedMs = performance.now();
  phases.create.push(createdMs - startedMs);
  phases.engineStart.push(runningMs - createdMs);
  await container.remove({ force: true, v: true });
  return endedMs - startedMs;
}

/** The description of a container that the driver made, read back from the engine, with labels, so that closing removes it. */
export async function specOfOurs(host: BenchHost): Promise<Docker.ContainerCreateOptions> {
  await using _sandbox = await host.sandbox(name);
  const { Config, HostConfig } = await (await host.containerOf(name)).inspect();
  return { ...Config, HostConfig } as Docker.ContainerCreateOptions;
}
