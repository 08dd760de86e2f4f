#!/usr/bin/env node
import { composeWorker } from "./compose.ts";
import { exitBadConfig, readConfig } from "./config.ts";

const read = readConfig();
if ("problems" in read) {
  process.stderr.write(
    `berth-worker: the configuration cannot be used:\n${read.problems.map((one) => `  ${one}\n`).join("")}`,
  );
  process.exit(exitBadConfig);
}
/** What telling the ends and letting go may take after the last job. Leases run out by themselves. */
const lastWordsMs = 10_000;
const { BERTH_DRAIN_MS: drainMs } = read.config;
let asked = false;
const worker = await composeWorker(read.config, stop);
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);

/** The first time in order, the second time now. Either is over at some time, whatever does not answer. */
function stop(): void {
  if (asked) {
    worker.abandon();
    exitAfter(lastWordsMs);
    return;
  }
  asked = true;
  exitAfter(drainMs + lastWordsMs);
  void worker.stop().then(() => process.exit(0));
}

function exitAfter(ms: number): void {
  setTimeout(() => {
    process.stderr.write(
      "berth-worker: something did not let go in time; its leases run out by themselves\n",
    );
    process.exit(1);
  }, ms);
}
