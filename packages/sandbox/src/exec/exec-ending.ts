import { statsScript, sweepScript } from "./command-scripts.ts";
import type { ExecHost } from "./exec-host.ts";
import { runScript } from "./script-run.ts";

const sweepDeadlineMs = 5_000;
/** A script of ours that has just begun or ended may have a process that no guest owns. */
const unsettledMs = 200;
const sweeps = 4;

/** Kills the session of `pid`; then the number of processes that may be its runaway descendants. */
export async function leftAfterSweep(host: ExecHost, pid: number, generation: number): Promise<number> {
  for (let sweep = 1; ; sweep++) {
    const beganMs = performance.now();
    const left = await sweepOnce(host, pid, generation);
    const settled = host.unchangedMs > performance.now() - beganMs + unsettledMs;
    const untold = [...host.guests].some((guest) => guest.pid === undefined);
    if (left === 0 || sweep === sweeps || (settled && !untold)) return left;
  }
}

/**
 * At its end by itself: only what stayed in its session can be told from the background of others. An engine too busy for one sweep
 * is asked again; the container is not restarted for it, since others may run there.
 */
export async function killBackgroundOf(host: ExecHost, pid: number, generation: number): Promise<void> {
  for (let sweep = 1; sweep <= sweeps; sweep++) {
    const swept = await sweepOnce(host, pid, generation).then(
      () => true,
      () => false,
    );
    if (swept || host.end) return;
  }
}

async function sweepOnce(host: ExecHost, target: number, generation: number): Promise<number> {
  const known = [...host.guests].flatMap(({ pid }) =>
    pid === undefined || pid === target ? [] : [String(pid)],
  );
  const answer = await runScript(host, {
    operation: "sweep",
    script: sweepScript,
    args: [String(target), ...known],
    isPartOfEnding: true,
    generation,
    deadlineMs: sweepDeadlineMs,
  });
  const left = Number(answer.kind === "ok" ? answer.words[0] : Number.NaN);
  return Number.isSafeInteger(left) && left >= 0 ? left : 1;
}

export interface CgroupValues {
  readonly memoryBytes: number;
  readonly memoryPeakBytes: number;
  readonly cpuMs: number;
  readonly processes: number;
  readonly oomKills: number;
}

export async function cgroupValues(host: ExecHost, signal?: AbortSignal): Promise<CgroupValues> {
  const answer = await runScript(host, { operation: "stats", script: statsScript, signal, repeat: () => {} });
  const words = answer.kind === "ok" ? answer.words : [];
  const value = (place: number) => {
    const number = Number(words[place]);
    return Number.isFinite(number) && number >= 0 ? number : 0;
  };
  return {
    memoryBytes: value(1),
    memoryPeakBytes: value(2),
    // Microseconds in version 2, nanoseconds in version 1.
    cpuMs: value(3) / (words[0] === "2" ? 1e3 : 1e6),
    processes: value(4),
    oomKills: value(5),
  };
}

/** The kernel's count since the last time anybody asked; undefined when it cannot be read. */
export async function oomKillsSince(host: ExecHost): Promise<number | undefined> {
  try {
    const { oomKills } = await cgroupValues(host);
    const before = host.oomKillsTold;
    host.oomKillsTold = oomKills;
    return Math.max(0, oomKills - before);
  } catch {
    return undefined;
  }
}
