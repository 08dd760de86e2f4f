import { loadavg } from "node:os";
import type { WorkerStatus } from "@berth/ledger";
import type { DockerDriver } from "@berth/sandbox";
import type { Logger } from "pino";
import type { Config } from "./config.ts";
import type { EngineHealth } from "./engine-health.ts";
import type { FleetMember } from "./member.ts";
import type { Parking } from "./parking.ts";
import type { Policy } from "./policy.ts";
import type { Turns } from "./turns.ts";
import { machineOf } from "./worker-claim.ts";

/** The status that a worker publishes before it holds anything. */
export function startingStatus({ maxSandboxes, host, pools }: Config, version: string): WorkerStatus {
  return {
    slots: maxSandboxes,
    host,
    machine: machineOf(),
    pools,
    pid: process.pid,
    version,
    held: 0,
    running: 0,
    parked: 0,
    parkedBytes: 0,
    warm: 0,
    warmWhy: "",
    quotaWhy: "",
    openNetworks: [],
    link: "none",
    disk: "ok",
    health: "ok",
    load: 0,
  };
}

export interface StatusParts {
  readonly member: FleetMember;
  readonly turns: Turns;
  readonly parking: Parking;
  readonly driver: DockerDriver;
  readonly policy: Policy;
  readonly health: EngineHealth;
  /** What carries the frames of the sandbox that was opened last. */
  readonly link: () => WorkerStatus["link"];
  readonly log: Logger;
}

/** Returns a function that describes the worker as it is now. Each call also starts a look at the disk, for the next call. */
export function statusOf(starting: WorkerStatus, parts: StatusParts): () => WorkerStatus {
  const { member, turns, parking, driver, policy, health, link, log } = parts;
  let quotaWhy = starting.quotaWhy;
  void driver.quota().then(({ problem = "" }) => {
    quotaWhy = problem;
  });
  let diskTrouble: string | undefined;
  const lookAtDisk = async () => {
    const found = await driver.diskTrouble();
    if ((found === undefined) !== (diskTrouble === undefined))
      log[found ? "error" : "info"]({ event: "worker.disk", detail: found ?? "there is room again" });
    diskTrouble = found;
  };
  return () => {
    void lookAtDisk();
    return {
      ...starting,
      held: member.held,
      running: turns.taken,
      parked: parking.count,
      parkedBytes: parking.memoryBytes,
      warm: driver.warm?.ready ?? 0,
      warmWhy: driver.warm?.why ?? "",
      quotaWhy,
      openNetworks: policy.openNetworks(),
      link: link(),
      disk: diskTrouble ?? "ok",
      health: health.state.state === "ok" ? "ok" : health.state.why,
      load: loadavg()[0] ?? 0,
    };
  };
}
