#!/usr/bin/env node
import { faultTable, isFault } from "@berth/protocol";
import { configComplaint, exitBadConfig } from "@berth/service";
import { composeGateway, type RunningGateway, Unguarded } from "./compose.ts";
import { type Config, readConfig } from "./config.ts";

function refuse(problems: readonly string[]): never {
  process.stderr.write(configComplaint("berth-gateway", problems));
  process.exit(exitBadConfig);
}

async function start(config: Config): Promise<RunningGateway> {
  try {
    return await composeGateway(config);
  } catch (error) {
    if (error instanceof Unguarded) refuse([error.message]);
    if (isFault(error, "redis-unauthorized"))
      refuse([`REDIS_URL: ${error.message}. ${faultTable[error.code].operator}`]);
    if (isFault(error, "redis-layout")) {
      process.stderr.write(`berth-gateway: ${error.message}. ${faultTable[error.code].operator}\n`);
      process.exit(exitBadConfig);
    }
    const { code = "", message } = error as NodeJS.ErrnoException;
    // Expected causes, such as an address in use or an unreachable Redis: a stack would not help.
    process.stderr.write(`berth-gateway: it cannot start: ${message}${code === "" ? "" : ` (${code})`}\n`);
    process.exit(1);
  }
}

const read = readConfig();
let asked = false;
let gateway: RunningGateway | undefined;
// A local fleet holds our IPC channel. When it closes, the parent process is gone.
process.once("disconnect", () => {
  if (!asked) stop();
});
gateway = await ("problems" in read ? refuse(read.problems) : start(read.config));
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);

function stop(): void {
  if (!gateway) process.exit(0);
  // A second signal skips to the last stage.
  if (asked) gateway.abandon();
  else void gateway.stop().then(() => process.exit(0));
  asked = true;
}
