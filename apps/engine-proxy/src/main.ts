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
const { rules, BERTH_PROXY_ENGINE, BERTH_PROXY_SOCKET: socket } = read.config;
const log = pino({ base: null });
for (const detail of settingWarnings()) log.warn({ event: "setting.unknown", detail });
const engine = new Engine(BERTH_PROXY_ENGINE);
const about = await engine.value("/info").catch((error: Error) => {
  process.stderr.write(`berth-engine-proxy: no engine answers at ${BERTH_PROXY_ENGINE}: ${error.message}\n`);
  process.exit(1);
});
const { SecurityOptions } = z
  .looseObject({ SecurityOptions: z.array(z.string()).nullish() })
  .parse(about ?? {});
const rootless = (SecurityOptions ?? []).some((option) => option.includes("rootless"));
const proxy = new EngineProxy(engine, { ...rules, rootless }, (refused) =>
  log.warn({ event: "engine.refused", ...refused }),
);
rmSync(socket, { force: true });
await proxy.listen(socket);
// Every process that shares the volume is a worker, whatever its user.
chmodSync(socket, 0o666);
// Workers dial again and adopt what they had; there is nothing to wait for.
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => process.exit(0));
