#!/usr/bin/env node
/** The engine proxy, as infra/compose/engine-proxy.yml runs it in the worker's image. */
import { chmodSync, rmSync } from "node:fs";
import { configComplaint, exitBadConfig } from "@berth/service";
import { pino } from "pino";
import { z } from "zod";
import { readConfig, settingWarnings } from "./config.ts";
import { Engine } from "./engine.ts";
import { EngineProxy } from "./proxy.ts";

const read = readConfig();
if ("problems" in read) {
  process.stderr.write(configComplaint("berth-engine-proxy", read.problems));
  process.exit(exitBadConfig);
}
const { rules, engineSocket, proxySocket } = read.config;
const log = pino({ base: null });
for (const detail of settingWarnings()) log.warn({ event: "setting.unknown", detail });
const engine = new Engine(engineSocket);
const about = await engine.value("/info").catch((error: Error) => {
  process.stderr.write(`berth-engine-proxy: no engine answers at ${engineSocket}: ${error.message}\n`);
  process.exit(1);
});
const { SecurityOptions } = z
  .looseObject({ SecurityOptions: z.array(z.string()).nullish() })
  .parse(about ?? {});
const rootless = (SecurityOptions ?? []).some((option) => option.includes("rootless"));
const proxy = new EngineProxy(engine, { ...rules, rootless }, (refused) =>
  log.warn({ event: "engine.refused", ...refused }),
);
rmSync(proxySocket, { force: true });
await proxy.listen(proxySocket);
// Only workers share the volume, and each may run as another user.
chmodSync(proxySocket, 0o666);
// No need to drain: workers connect to the next proxy and adopt their containers.
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => process.exit(0));
