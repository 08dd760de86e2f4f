/**
 * A process of its own, so that nothing else was in its memory before: takes transfers one after the other and reports its
 * parent how high its resident memory rose in each. Run by output.ts.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { BenchHost, type BenchPlace, succeeded } from "./bench-host.ts";
import { apiExec } from "./engine-exec.ts";
import { makeBig, transferApi, transferOurs } from "./transfer.ts";

export type Way = "ours" | "api";

interface Task {
  readonly place: BenchPlace;
  readonly way: Way;
  readonly transfers: number;
}

/** After each transfer: the highest resident memory so far, less that before the first transfer, in MB. */
export async function memoryGrowth(task: Task): Promise<number[]> {
  const child = fork(fileURLToPath(import.meta.url), [], { execArgv: process.execArgv });
  child.send(task);
  return answerOf(child);
}

function answerOf(child: ChildProcess): Promise<number[]> {
  return new Promise((resolve, reject) => {
    child.once("message", (growth) => resolve(growth as number[]));
    child.once("error", reject);
    child.once("exit", (code, signal) => reject(new Error(`the memory's process ended: ${signal ?? code}`)));
  });
}

async function measure({ place, way, transfers }: Task): Promise<number[]> {
  const host = BenchHost.join(place);
  const key = `memory-${way}`;
  await using sandbox = await host.sandbox(key);
  const container = await host.containerOf(key);
  await makeBig(sandbox);
  // Both ways have run once, so that loading code is not measured.
  succeeded(await sandbox.exec({ command: "true" }));
  await apiExec(container, ["sh", "-c", "true"]);
  const before = process.memoryUsage.rss();
  let peak = before;
  const look = () => {
    peak = Math.max(peak, process.memoryUsage.rss());
  };
  const timer = setInterval(look, 10);
  const growth: number[] = [];
  for (let i = 0; i < transfers; i++) {
    await (way === "ours" ? transferOurs(sandbox) : transferApi(container));
    look();
    growth.push((peak - before) / 1_000_000);
  }
  clearInterval(timer);
  return growth;
}

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  // A Ctrl-C reaches this process too. Only the parent acts on it, and this process ends with it.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  process.once("disconnect", () => process.exit(1));
  process.once("message", (task) => {
    measure(task as Task).then(
      (growth) => process.send?.(growth, () => process.exit(0)),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
}
