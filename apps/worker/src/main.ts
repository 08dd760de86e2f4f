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
const worker = await composeWorker(read.config);
let asked = false;
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => {
    // A second signal skips to the last stage.
    if (asked) worker.abandon();
    else void worker.stop().then(() => process.exit(0));
    asked = true;
  });
}
