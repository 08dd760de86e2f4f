import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ClaimResult,
  pingWorker,
  readWorkerProcess,
  type WorkerIds,
  type WorkerInstance,
  type WorkerStatus,
} from "@berth/ledger";
import { Fault } from "@berth/protocol";
import { countConnections, type Redis, refusesWrites } from "@berth/redis";

export interface WorkerClaimOptions {
  readonly redis: Redis;
  readonly ids: WorkerIds;
  readonly self: WorkerInstance;
  readonly keptMs: number;
  readonly status: WorkerStatus;
  /** Called while Redis refuses to write and the worker cannot start: at first, and then repeatedly. */
  readonly onWaiting: (why: string, waitedMs: number) => void;
}

/** A live process answers within milliseconds, or within this while it collects garbage or starts up. */
const silentMs = 2_000;
const askAgainMs = 250;
/** While Redis refuses to write: the pause between two tries, and between two log lines. */
const refusedPauseMs = 1_000;
const refusedLogMs = 10_000;
/** A connection that is being reopened is missing for up to this long. */
const reconnectMs = 300;

/** The boot id: the same for every process and container of a machine until its next boot, which ends all containers. */
export function machineOf(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return hostname();
  }
}

/** Client name of a worker's connections. The worker's next process looks whether a connection of this name is still open. */
export function connectionName({ worker, instance }: WorkerInstance): string {
  return `berth-worker:${worker}:${instance}`;
}

/**
 * Claims the worker id for this process, before it does anything in its name. Returns the id's last process if that ran on this machine
 * and is surely dead. Throws if another process has the id and answers. A process that does not answer and may be alive loses the id, but
 * its leases expire by themselves.
 */
export async function claimWorkerId(options: WorkerClaimOptions): Promise<string | undefined> {
  const { redis, self, status } = options;
  let replacing: string | undefined;
  let isDead = false;
  for (;;) {
    const claimed = await claimWhenWritten(options, replacing);
    if (claimed.ours) return isDead ? replacing : undefined;
    const earlier = { worker: self.worker, instance: claimed.by };
    const { host, pid, machine } = await readWorkerProcess(redis, self.worker);
    const hasGone = await isGone(redis, connectionName(earlier));
    if (!hasGone && (await answers(options, earlier.instance)))
      throw new Fault("worker-id-taken", { worker: self.worker, host, pid });
    replacing = earlier.instance;
    // On another machine its containers live on until their leases are over.
    isDead = hasGone && machine === status.machine;
  }
}

async function claimWhenWritten(
  { ids, self, keptMs, status, onWaiting }: WorkerClaimOptions,
  replacing: string | undefined,
): Promise<ClaimResult> {
  const sinceMs = performance.now();
  for (let nextLogMs = sinceMs; ; await sleep(refusedPauseMs)) {
    try {
      return await ids.claim(self, { replacing, keptMs, seen: false, status });
    } catch (error) {
      if (!refusesWrites(error)) throw error;
      if (performance.now() < nextLogMs) continue;
      nextLogMs = performance.now() + refusedLogMs;
      onWaiting((error as Error).message, Math.round(performance.now() - sinceMs));
    }
  }
}

async function isGone(redis: Redis, name: string): Promise<boolean> {
  if ((await countConnections(redis, name)) !== 0) return false;
  await sleep(reconnectMs);
  return (await countConnections(redis, name)) === 0;
}

async function answers({ redis, self }: WorkerClaimOptions, instance: string): Promise<boolean> {
  const status = await pingWorker(redis, self.worker, { withinMs: silentMs, againMs: askAgainMs });
  return status?.instance === instance;
}
