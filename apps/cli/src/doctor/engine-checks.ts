import { existsSync, readdirSync } from "node:fs";
import { faultTable, fleetId, isFault, workerId } from "@berth/protocol";
import { DockerDriver, diskOf } from "@berth/sandbox";
import { z } from "zod";
import type { Config } from "../config.ts";
import { askEngine } from "./engine-api.ts";
import { type Finding, findingsOf } from "./finding.ts";
import { knobs } from "./knob-checks.ts";
import { runcReport } from "./runc-advisories.ts";

const versionAnswer = z.object({
  Components: z
    .array(
      z.object({
        Name: z.string(),
        Version: z.string(),
        Details: z.object({ GitCommit: z.string().default("") }).prefault({}),
      }),
    )
    .default([]),
});
const infoAnswer = z.object({
  DefaultRuntime: z.string().default("runc"),
  SecurityOptions: z.array(z.string()).nullish(),
  Driver: z.string().default(""),
  DriverStatus: z.array(z.array(z.string())).nullish(),
  MemoryLimit: z.boolean().default(true),
  SwapLimit: z.boolean().default(true),
  Warnings: z.array(z.string()).nullish(),
  PidsLimit: z.boolean().default(true),
  CpuCfsQuota: z.boolean().default(true),
});

const { ok, warn, bad } = findingsOf("engine");

/** Checks that the container engine answers, which runtime it uses, and which limits it can enforce. */
export async function* engineChecks(config: Config): AsyncGenerator<Finding> {
  const driver = new DockerDriver({
    fleet: fleetId.parse("doctor"),
    worker: workerId.parse("doctor"),
    workspacesRoot: config.workspacesRoot,
    engineHost: config.engineHost,
  });
  let report: Awaited<ReturnType<typeof driver.check>>;
  try {
    report = await driver.check();
  } catch (error) {
    if (!isFault(error)) throw error;
    yield bad(error.message, faultTable[error.code].operator);
    return;
  }
  const { engine, version, rootless, cgroupVersion, runtimes } = report;
  yield ok(`engine ${version} answers at ${engine}${rootless ? ", without root" : ""}`);
  yield cgroupVersion === "2"
    ? ok("cgroup v2")
    : warn(
        "cgroup v1: it works here, and kernels and engines are leaving it",
        "boot with systemd.unified_cgroup_hierarchy=1 when convenient",
      );
  const info = infoAnswer.parse(await askEngine(config.engineHost, "/info"));
  const { Components } = versionAnswer.parse(await askEngine(config.engineHost, "/version"));
  yield* limits(info);
  yield* runtime(config.runtime ?? info.DefaultRuntime, runtimes, Components);
  yield* security(info.SecurityOptions ?? []);
  yield await warmPool(driver);
  yield* knobs({
    runtimes,
    securityOptions: info.SecurityOptions ?? [],
    swapLimit: info.SwapLimit,
    ioWeight: hasIoWeight(info.Warnings ?? []),
    unthrottled: unthrottled(info.Warnings ?? []),
    disk: (await diskOf(config.workspacesRoot).catch(() => undefined)) !== undefined,
    cgroupVersion,
    driver: info.Driver,
    backingFilesystem: info.DriverStatus?.find(([name]) => name === "Backing Filesystem")?.[1],
  });
}

/** Starts a container with this worker's settings, and mounts a workspace in it. */
async function warmPool(driver: DockerDriver): Promise<Finding> {
  const why = await driver.whyNotWarm();
  return why === undefined
    ? ok("a container can be given its workspace while it runs: new sandboxes start from the warm pool")
    : warn(
        `no warm pool for a worker with this user's rights: each new sandbox waits for the engine (${why})`,
        "docs/operations.md, Warm pool, lists what a worker needs; without a warm pool only first jobs are slower",
      );
}

/** An engine on cgroup v2 warns, in one of two wordings. On cgroup v1 the kernel's files show it. */
export function hasIoWeight(warnings: readonly string[]): boolean {
  if (warnings.some((warning) => /no (blkio weight|io\.weight) support/i.test(warning))) return false;
  const v1 = "/sys/fs/cgroup/blkio";
  return !existsSync(v1) || readdirSync(v1).some((name) => /^blkio\.(bfq\.)?weight$/.test(name));
}

const throttles: Readonly<Record<string, RegExp>> = {
  diskReadBytesPerSecond: /io\.max \(rbps\)|throttle\.read_bps_device/,
  diskWriteBytesPerSecond: /io\.max \(wbps\)|throttle\.write_bps_device/,
  diskReadsPerSecond: /io\.max \(riops\)|throttle\.read_iops_device/,
  diskWritesPerSecond: /io\.max \(wiops\)|throttle\.write_iops_device/,
};

/** The disk limits that the engine's warnings report as missing, in the wording of either cgroup version. */
export function unthrottled(warnings: readonly string[]): string[] {
  return Object.entries(throttles).flatMap(([name, words]) =>
    warnings.some((warning) => words.test(warning)) ? [name] : [],
  );
}

function* limits(info: z.infer<typeof infoAnswer>): Generator<Finding> {
  const missing = Object.entries({
    memory: info.MemoryLimit,
    swap: info.SwapLimit,
    processes: info.PidsLimit,
    cpu: info.CpuCfsQuota,
  }).flatMap(([name, able]) => (able ? [] : [name]));
  yield missing.length === 0
    ? ok("memory, swap, processes and cpu can be limited")
    : bad(
        `the engine cannot limit ${missing.join(", ")}`,
        "enable those cgroup controllers in the kernel (swapaccount=1 for swap)",
      );
}

function* runtime(
  name: string,
  runtimes: readonly string[],
  components: z.infer<typeof versionAnswer>["Components"],
): Generator<Finding> {
  if (!runtimes.includes(name)) {
    yield bad(
      `the runtime ${name} is not registered; there are ${runtimes.join(", ")}`,
      faultTable["runtime-missing"].operator,
    );
    return;
  }
  const { Version: version, Details } = components.find((one) => one.Name === "runc") ?? {};
  if (name !== "runc" && !name.includes("runc")) {
    yield ok(`sandboxes run with ${name}`);
    return;
  }
  const commit = Details?.GitCommit ?? "";
  const report = version === undefined ? undefined : runcReport(version, commit);
  if (!report) {
    yield warn(
      `runc's version (${version ?? "not reported"}) cannot be read`,
      "compare it with runc's advisories yourself",
    );
  } else if (report.open.length === 0) {
    yield ok(`runc ${version}: no known way out`);
  } else if (report.repackaged) {
    yield warn(
      `runc ${version}${commit === "" ? "" : ` (package ${commit})`} is by its number older than the fixes of ${report.open.join("; ")}: a tenant may get out unless your distribution has patched it`,
      "look each up in the package's changelog (Debian: zgrep CVE /usr/share/doc/runc/changelog.Debian.gz) or the distribution's security tracker, and update; for hostile tenants use BERTH_RUNTIME=runsc",
    );
  } else {
    yield bad(
      `runc ${version} has known ways out of a container, unless your distribution has patched it: ${report.open.join("; ")}`,
      "update runc, then restart the engine; for hostile tenants use BERTH_RUNTIME=runsc",
    );
  }
}

/** The engine's security options, such as `name=seccomp,profile=builtin`. */
export function* security(options: readonly string[]): Generator<Finding> {
  const has = (name: string) => options.some((option) => option.includes(`name=${name}`));
  if (!has("seccomp")) {
    yield bad("the engine runs containers without seccomp", "use an engine and a kernel with seccomp");
  } else {
    yield ok("seccomp is on");
  }
  if (has("userns"))
    yield bad(
      "the engine remaps user namespaces; workspaces would belong to the wrong user",
      "take userns-remap out of daemon.json, or use a rootless engine",
    );
  if (!has("apparmor") && !has("selinux"))
    yield warn(
      "neither AppArmor nor SELinux confines containers",
      "install AppArmor or SELinux for a second wall; seccomp and dropped capabilities stand without it",
    );
}
