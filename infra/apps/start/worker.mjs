/**
 * The worker's image starts here: it finds the settings that depend on the machine and puts them into the worker's
 * environment, then its own program runs. A variable that is set already stays.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { engineFacts } from "./engine-facts.mjs";
import { hostId } from "./host-id.mjs";
import { workerIdFrom } from "./names.mjs";
import { placeInit } from "./place-init.mjs";
import { takeSecrets } from "./secrets.mjs";
import { workerIdFile } from "./worker-id-file.mjs";

const environment = process.env;
takeSecrets(environment, ["REDIS_URL"]);
const workspaces = environment.BERTH_WORKSPACES || "/var/lib/berth/workspaces";
mkdirSync(workspaces, { recursive: true, mode: 0o711 });
const { machine, labels } = await engineFacts(environment.DOCKER_HOST, hostname()).catch((error) => {
  // The worker also starts without an engine. It then has only its container's name as id.
  process.stderr.write(`berth-worker: ${error.message}; taking the container's name for the worker's\n`);
  return { machine: "host", labels: {} };
});
const host = environment.BERTH_HOST || hostId(workspaces, machine);
const worker = environment.BERTH_WORKER_ID || workerIdFrom(labels, host) || hostname();
const init = environment.BERTH_INIT || placeInit(workspaces, new URL("../init", import.meta.url).pathname);
Object.assign(environment, {
  BERTH_WORKSPACES: workspaces,
  BERTH_HOST: host,
  BERTH_WORKER_ID: worker,
  BERTH_INIT: init,
});
writeFileSync(workerIdFile, worker);
await import("../dist/main.js");
