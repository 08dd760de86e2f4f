import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os";
import type { BenchHost } from "./bench-host.ts";

/** The machine's facts on which the numbers depend. Without names and paths: the output is pasted into documents. */
export async function machineFacts(host: BenchHost): Promise<string[]> {
  const [{ version, cgroupVersion, runtimes }, info] = await Promise.all([
    host.driver.check(),
    host.docker.info(),
  ]);
  const model = cpus()[0]?.model.trim() || "unknown";
  return [
    `cpu      ${availableParallelism()} × ${model}, ${Math.round(totalmem() / 2 ** 30)} GiB memory`,
    `kernel   ${release()}, cgroup v${cgroupVersion}`,
    `engine   ${version}, ${info.Driver}, ${info.DefaultRuntime} of ${runtimes.length} runtimes`,
    `node     ${process.version}`,
    `load     ${loadText()} at the start`,
  ];
}

export function loadText(): string {
  return loadavg()
    .map((load) => load.toFixed(2))
    .join(" ");
}
