#!/usr/bin/env node
import { faultTable, isFault } from "@berth/protocol";
import { probeWorkspaces } from "@berth/sandbox";
import { configComplaint, exitBadConfig } from "@berth/service";
import { composeWorker, type RunningWorker } from "./compose.ts";
import { readConfig } from "./config.ts";

const read = readConfig();
if ("problems" in read) {
  process.stderr.write(configComplaint("berth-worker", read.problems));
  process.exit(exitBadConfig);
}
await probeWorkspaces(read.config.workspacesRoot).catch((error: unknown) => {
  const problem = `BERTH_WORKSPACES: ${error instanceof Error ? error.message : error}`;
  process.stderr.write(configComplaint("berth-worker", [problem]));
  process.exit(exitBadConfig);
});
/** Time for publishing results and releasing leases after the last job. Leases that are not released expire. */
const closingMs = 10_000;
const { drainMs } = read.config;
let asked = false;
let exitCode = 0;
let worker: RunningWorker | undefined;
// A local fleet gives its workers an IPC channel: its end means that the process that started us is gone.
process.once("disconnect", () => {
  if (!asked) stop();
});
worker = await composeWorker(read.config, { onDrain: stop, onReplaced: leave }).catch(giveUp);
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);

/** First signal: graceful stop. Second: end all jobs now. Both have a time limit, so that an unresponsive peer cannot block the exit. */
function stop(): void {
  // Stopped while it starts: its claims in Redis expire by themselves.
  if (!worker) process.exit(exitCode);
  if (asked) {
    worker.abandon();
    exitAfter(closingMs);
    return;
  }
  asked = true;
  exitAfter(drainMs + closingMs);
  void worker.stop().then(() => process.exit(exitCode));
}

/** Another process has claimed this worker id, so this one may do nothing more in its name. */
function leave(): void {
  exitCode = 1;
  stop();
  stop();
}

function giveUp(error: unknown): never {
  if (error instanceof Error && "syscall" in error) {
    process.stderr.write(`berth-worker: it cannot start: ${error.message}\n`);
    process.exit(1);
  }
  if (!isFault(error)) throw error;
  process.stderr.write(`berth-worker: ${error.message}. ${faultTable[error.code].operator}\n`);
  const isMistake = error.code === "redis-unauthorized" || error.code === "redis-layout";
  process.exit(isMistake ? exitBadConfig : 1);
}

function exitAfter(ms: number): void {
  setTimeout(() => {
    process.stderr.write(
      "berth-worker: it did not stop in time and exits now; leases that it still holds expire by themselves\n",
    );
    process.exit(1);
  }, ms);
}
