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
let asked = false;
const worker = await composeWorker(read.config, stop);
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);

/** The first time in order, the second time now. */
function stop(): void {
  if (asked) worker.abandon();
  else void worker.stop().then(() => process.exit(0));
  asked = true;
}
