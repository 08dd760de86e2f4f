import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { epoch, fleetId, sandboxKey, sandboxProfile, workerId } from "@berth/protocol";
import { DockerDriver } from "@berth/sandbox";
import { type LoopFileSystem, loopMount, noLoopMount } from "../support/loop-mount.ts";
import type { BenchHost } from "./bench-host.ts";
import { interleave, median, timedMs } from "./measure.ts";
import { type Findings, type Plan, type Row, row, type Scenario } from "./scenario.ts";
import { short } from "./table.ts";

const name = "fork";
const files = 5_000;
const directories = 50;
const bytesEach = 20 * 1024;
const profile = sandboxProfile.parse({});

const aims: Readonly<Record<LoopFileSystem, { readonly ratio: number; readonly because: string }>> = {
  btrfs: {
    ratio: 50,
    because: "a subvolume is snapshotted as a whole, and most of the time is one process's start",
  },
  xfs: { ratio: 1.5, because: "each file is made anew, and the container that makes them has to start" },
};

/** A new workspace of a snapshot, against copying the same tree with cp on the same file system. */
export const fork: Scenario = {
  name,
  about: `a fork of ${files} files of 20 KiB against cp -a --reflink=never of the same tree, on btrfs and xfs in a file, and on the disk`,
  async run(host, plan): Promise<Findings> {
    const rows: Row[] = [];
    const notes: string[] = [];
    const onDisk = await measure(host, plan, "this disk", join(host.place.workspacesRoot, "fork"));
    rows.push(onDisk.row);
    notes.push(onDisk.note);
    for (const kind of ["btrfs", "xfs"] as const) {
      const why = noLoopMount(kind);
      if (why !== undefined) {
        notes.push(`${kind} was left out: ${why}`);
        continue;
      }
      using mounted = loopMount(kind, "4G");
      const found = await measure(host, plan, kind, join(mounted.path, "w"), aims[kind]);
      rows.push(found.row);
      notes.push(found.note);
    }
    return { rows, notes };
  },
};

/** Writes out what earlier samples left in memory: btrfs would make the snapshot wait for all files that `cp` has just made. */
function settleDisk(path: string): void {
  execFileSync("sync", ["-f", path]);
}

async function measure(
  host: BenchHost,
  plan: Plan,
  where: string,
  workspacesRoot: string,
  aim?: { readonly ratio: number; readonly because: string },
) {
  const driver = new DockerDriver({
    fleet: fleetId.parse(host.place.fleet),
    engineHost: process.env.DOCKER_HOST,
    worker: workerId.parse("bench-fork"),
    workspacesRoot,
  });
  const key = sandboxKey.parse("source");
  const sandbox = await driver.start({ key, profile, leaseMs: 60_000, epoch: epoch.parse(1) });
  await sandbox.exec({
    command: `for d in $(seq ${directories}); do mkdir d$d; head -c ${(files / directories) * bytesEach} /dev/urandom | split -a 3 -b ${bytesEach} - d$d/f; done`,
    limits: { timeoutMs: 300_000 },
  });
  const measured = await sandbox.usage();
  await sandbox.stop();
  const snapshot = { id: "source.base.0123456789abcdef", name: "base" };
  let method = "";
  const takenMs = await timedMs(async () => {
    ({ method } = await driver.trees.take({ key, profile }, snapshot.id, measured, {}));
  });
  let made = 0;
  const tree = join(workspacesRoot, ".snapshots", snapshot.id);
  const copies = join(workspacesRoot, "copies");
  mkdirSync(copies);
  const samples = await interleave(
    [
      {
        name: "fork",
        perRound: 1,
        sample: () => {
          settleDisk(workspacesRoot);
          return timedMs(() =>
            driver.trees.fork({ key: sandboxKey.parse(`fork${made++}`), profile }, snapshot, {}),
          );
        },
      },
      {
        name: "cp",
        perRound: 1,
        sample: () => {
          settleDisk(workspacesRoot);
          return timedMs(async () => {
            execFileSync("cp", ["-a", "--reflink=never", tree, join(copies, String(made++))]);
          });
        },
      },
    ],
    plan.quick ? 3 : 8,
    plan,
  );
  const [ours = [], baseline = []] = [samples.get("fork"), samples.get("cp")];
  return {
    row: row({
      scenario: name,
      metric: `fork on ${where} (${method}) p50`,
      unit: "ms",
      better: "lower",
      ours: median(ours),
      baseline: median(baseline),
      baselineName: "cp -a",
      samples: { ours: ours.length, baseline: baseline.length },
      ...(aim ? { aim: { ratio: aim.ratio, because: aim.because } } : {}),
    }),
    note: `on ${where} the snapshot itself took ${short(takenMs)} ms (${method})`,
  };
}
