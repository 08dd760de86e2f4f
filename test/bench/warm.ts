import { setTimeout as sleep } from "node:timers/promises";
import { epoch, fleetId, sandboxKey, sandboxProfile, workerId } from "@berth/protocol";
import { DockerDriver, type Sandbox } from "@berth/sandbox";
import type Docker from "dockerode";
import { type BenchHost, succeeded } from "./bench-host.ts";
import { specOfOurs } from "./cold-start.ts";
import { type Contender, interleave, median, percentile, timedMs } from "./measure.ts";
import { type Findings, type Row, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "warm";
/** Containers that are ready when a sample begins, while none is being made, so that only the sample's own work is measured. */
const ready = 2;
const returning = 6;

/** From no running container to the first exit code with the warm pool, against the engine's create and start. */
export const warm: Scenario = {
  name,
  about: "driver.start() and a first sh -c true with a container of the warm pool, against create + start",
  async run(host, plan): Promise<Findings> {
    const pool = poolOf(host);
    if (typeof pool === "string") return { rows: [], notes: [pool] };
    const spec = await specOfOurs(host);
    pool.driver.startWarming();
    const starts: number[] = [];
    let made = 0;
    let turn = 0;
    const ours = async (key: string) => {
      await untilReady(pool.driver);
      return firstExit(pool.driver, key, starts);
    };
    const contenders: Contender[] = [
      { name: "new", perRound: 2, sample: () => ours(`warm-new-${made++}`) },
      { name: "returning", perRound: 2, sample: () => ours(`warm-back-${turn++ % returning}`) },
      { name: "create + start", perRound: 1, sample: () => untilStarted(host, spec) },
    ];
    try {
      for (let index = 0; index < returning; index++)
        await firstExit(host.driver, `warm-back-${index}`, [], "echo kept > file; exit 0");
      const samples = await interleave(contenders, plan.quick ? 8 : 25, plan);
      const of = (contender: string) => samples.get(contender) ?? [];
      const compare = (contender: string, tenant: string): Row =>
        row({
          scenario: name,
          metric: `first job of a ${tenant} tenant`,
          unit: "ms",
          better: "lower",
          ours: median(of(contender)),
          baseline: median(of("create + start")),
          baselineName: "create + start",
          samples: { ours: of(contender).length, baseline: of("create + start").length },
          aim: {
            ratio: 15,
            because: "the workspace is mounted in a container that runs, and init says hello",
          },
        });
      const least = (contender: string) => short(percentile(of(contender), 10));
      return {
        rows: [compare("new", "new"), compare("returning", "returning")],
        notes: [
          `driver.start() took ${short(median(starts))} ms, the first command the rest; the fastest tenth took ${least("new")} and ${least("returning")} ms, of create + start ${least("create + start")} ms`,
        ],
      };
    } finally {
      await pool.driver.stopWarming();
    }
  },
};

function poolOf({ place }: BenchHost): { readonly driver: DockerDriver } | string {
  if (process.getuid?.() !== 0) return "not measured: a warm pool needs a worker with root";
  const driver = new DockerDriver({
    fleet: fleetId.parse(place.fleet),
    worker: workerId.parse("bench-warm"),
    workspacesRoot: place.workspacesRoot,
    engineHost: process.env.DOCKER_HOST,
    warm: {
      sizes: { count: ready, most: ready },
      profile: () => sandboxProfile.parse({}),
      onState: () => {},
    },
  });
  return { driver };
}

async function untilReady(driver: DockerDriver): Promise<void> {
  while (driver.warm?.ready !== ready) {
    if (driver.warm?.why !== undefined) throw new Error(`no warm pool: ${driver.warm.why}`);
    await sleep(20);
  }
}

let lastEpoch = 0;

async function firstExit(
  driver: DockerDriver,
  key: string,
  starts: number[],
  command = "true",
): Promise<number> {
  let sandbox: Sandbox | undefined;
  const request = {
    ...{ key: sandboxKey.parse(key), epoch: epoch.parse(++lastEpoch) },
    ...{ profile: sandboxProfile.parse({}), leaseMs: 10_000 },
  };
  try {
    const ms = await timedMs(async () => {
      starts.push(
        await timedMs(async () => {
          sandbox = await driver.start(request);
        }),
      );
      if (sandbox) succeeded(await sandbox.exec({ command }));
    });
    if (driver.warm && sandbox?.origin.how !== "warm")
      throw new Error(`it did not get a warm container: ${driver.warm.why ?? "none was ready"}`);
    return ms;
  } finally {
    await sandbox?.stop();
  }
}

async function untilStarted(host: BenchHost, spec: Docker.ContainerCreateOptions): Promise<number> {
  let container: Docker.Container | undefined;
  const ms = await timedMs(async () => {
    container = await host.docker.createContainer(spec);
    await container.start();
  });
  await container?.remove({ force: true, v: true });
  return ms;
}
