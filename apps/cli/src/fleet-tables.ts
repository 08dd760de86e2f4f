import { givenNamesText } from "@berth/protocol";
import type { SandboxView, Scale, TenantUsage, WorkerRecord } from "./door.ts";
import { counted, spanText } from "./terminal/quantities.ts";
import { type Paint, table } from "./terminal/table.ts";
import type { Terminal } from "./terminal/terminal.ts";

export function workerTable(
  workers: readonly WorkerRecord[],
  terminal: Terminal,
  nowMs = Date.now(),
): string {
  const rows = workers
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map(
      ({
        id,
        host,
        pools,
        slots,
        held,
        running,
        parked,
        warm,
        link,
        load,
        version,
        lastSeenMs,
        health,
        disk,
      }) => [
        id,
        host,
        pools.join(","),
        `${held}/${slots}`,
        running,
        parked,
        warm,
        link,
        load.toFixed(2),
        version,
        spanText(Math.max(0, nowMs - lastSeenMs)),
        health === "ok" ? disk : health,
      ],
    );
  const header = [
    "WORKER",
    "HOST",
    "POOLS",
    "SLOTS",
    "RUNNING",
    "PARKED",
    "WARM",
    "LINK",
    "LOAD",
    "VERSION",
    "SEEN",
    "HEALTH",
  ];
  return table(
    header,
    rows,
    withTitles(terminal, (text, column) =>
      column === "HEALTH" ? terminal.style(text === "ok" ? "green" : "red", text) : text,
    ),
  );
}

export function sandboxTable(
  sandboxes: readonly SandboxView[],
  terminal: Terminal,
  nowMs = Date.now(),
): string {
  const named = sandboxes.some(({ names }) => names !== undefined);
  const rows = sandboxes.map(({ key, names, worker, unfinished, epoch, home, pool, paused, lastUsedMs }) => [
    key,
    worker ?? "-",
    unfinished,
    epoch,
    pool,
    home ?? "-",
    paused ? "paused" : "-",
    spanText(Math.max(0, nowMs - lastUsedMs)),
    ...(named ? [givenNamesText(names) || "-"] : []),
  ]);
  const header = ["SANDBOX", "WORKER", "JOBS", "EPOCH", "POOL", "HOME", "STATE", "USED"];
  if (named) header.push("GIVEN NAMES");
  return table(
    header,
    rows,
    withTitles(terminal, (text, column) => {
      if (column === "STATE" && text === "paused") return terminal.style("yellow", text);
      return column === "JOBS" && text !== "0" ? terminal.style("cyan", text) : text;
    }),
  );
}

export function ceilingTable(uses: TenantUsage["ceilings"], terminal: Terminal): string {
  const rows = uses.map(({ ceiling, used, limit }) => [ceiling, used ?? "-", limit === 0 ? "none" : limit]);
  return table(
    ["CEILING", "USED", "LIMIT"],
    rows,
    withTitles(terminal, (text) => text),
  );
}

function withTitles(terminal: Terminal, paint: Paint): Paint {
  return (text, column, row) => (row === undefined ? terminal.style("dim", text) : paint(text, column, row));
}

/** The autoscaler's numbers on one line. */
export function scaleLine(scale: Scale): string {
  const { workers, slots, freeSlots, unfinishedJobs, waitingSandboxes, oldestWaitMs } = scale;
  const waiting =
    waitingSandboxes === 0
      ? "nothing waits for a worker"
      : `${counted(waitingSandboxes, "sandbox")} waiting for a worker, the first for ${spanText(oldestWaitMs)}`;
  return `${counted(workers, "worker")}, ${slots - freeSlots} of ${slots} slots held, ${counted(unfinishedJobs, "job")} unfinished, ${waiting}`;
}
