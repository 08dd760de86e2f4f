/** The engine proxy, as infra/compose/engine-proxy.yml runs it in the worker's image. */
import { chmodSync, rmSync } from "node:fs";
import { Engine } from "./engine.mjs";
import { EngineProxy } from "./proxy.mjs";
import { rulesFrom } from "./settings.mjs";

const { BERTH_PROXY_ENGINE, BERTH_PROXY_SOCKET } = process.env;
const engine = new Engine(BERTH_PROXY_ENGINE || "/var/run/docker.sock");
const info = await engine.value("/info");
const rootless = (info?.SecurityOptions ?? []).some((option) => String(option).includes("rootless"));
const rules = rulesFrom(process.env, { rootless });
const proxy = new EngineProxy(engine, rules, (refused) =>
  process.stdout.write(
    `${JSON.stringify({ level: 40, time: Date.now(), event: "engine.refused", ...refused })}\n`,
  ),
);
const socket = BERTH_PROXY_SOCKET || "/run/berth-engine/engine.sock";
rmSync(socket, { force: true });
await proxy.listen(socket);
// Whoever shares the volume is a worker, whatever its user.
chmodSync(socket, 0o666);
// Workers dial again and adopt what they had; there is nothing to wait for.
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(0));
