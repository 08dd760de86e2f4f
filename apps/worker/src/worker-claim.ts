import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ClaimResult,
  pingWorker,
  readWorkerProcess,
  type WorkerIds,
  type WorkerLife,
  type WorkerStatus,
} from "@berth/ledger";
import { Fault } from "@berth/protocol";
import { countConnections, type Redis, refusesWrites } from "@berth/redis";

export interface WorkerClaimOptions {
  readonly redis: Redis;
  readonly ids: WorkerIds;
  readonly life: WorkerLife;
  readonly keptMs: number;
  readonly status: WorkerStatus;
  /** Redis refuses to write, so the worker cannot start yet: called at first, and repeatedly while that lasts. */
  readonly onWaiting: (why: string, waitedMs: number) => void;
}

/** A process that answers, does so in milliseconds; one that collects garbage or starts up, in less than this. */
const silentMs = 2_000;
const askAgainMs = 250;
/** Between two tries while Redis refuses to write, and between two words about it. */
const refusedPauseMs = 1_000;
const refusedWordMs = 10_000;
/** A connection that is being made again is missing for so long. */
const reconnectMs = 300;

/** The same for every process and container of a machine until it is started again; then no container of before runs. */
export function machineOf(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return hostname();
  }
}

/** The client name of a worker's connections, by which its next process sees whether they are still open. */
export function connectionName({ worker, instance }: WorkerLife): string {
  return `berth-worker:${worker}:${instance}`;
}

/**
 * Becomes the one process that speaks for a worker id, before anything else is done in its name. What it gives back is an earlier life
 * on this machine that is known to be dead. One that answers keeps the id: throws. One that does not answer and is not known to be
 * dead loses the id, but its leases run out by themselves.
 */
export async function claimWorkerId(options: WorkerClaimOptions): Promise<string | undefined> {
  const { redis, life, status } = options;
  let replacing: string | undefined;
  let isDead = false;
  for (;;) {
    const claimed = await claimWhenWritten(options, replacing);
    if (claimed.ours) return isDead ? replacing : undefined;
    const earlier = { worker: life.worker, instance: claimed.by };
    const { host, pid, machine } = await readWorkerProcess(redis, life.worker);
    const hasGone = await isGone(redis, connectionName(earlier));
    if (!hasGone && (await answers(options, earlier.instance)))
      throw new Fault("worker-id-taken", { worker: life.worker, host, pid });
    replacing = earlier.instance;
    // On another machine its containers live on until they miss it.
    isDead = hasGone && machine === status.machine;
  }
}

async function claimWhenWritten(
  { ids, life, keptMs, status, onWaiting }: WorkerClaimOptions,
  replacing: string | undefined,
): Promise<ClaimResult> {
  const sinceMs = performance.now();
  for (let wordMs = sinceMs; ; await sleep(refusedPauseMs)) {
    try {
      return await ids.claim(life, { replacing, keptMs, seen: false, status });
    } catch (error) {
      if (!refusesWrites(error)) throw error;
      if (performance.now() < wordMs) continue;
      wordMs = performance.now() + refusedWordMs;
      onWaiting((error as Error).message, Math.round(performance.now() - sinceMs));
    }
  }
}

async function isGone(redis: Redis, name: string): Promise<boolean> {
  if ((await countConnections(redis, name)) !== 0) return false;
  await sleep(reconnectMs);
  return (await countConnections(redis, name)) === 0;
}

async function answers({ redis, life }: WorkerClaimOptions, instance: string): Promise<boolean> {
  const status = await pingWorker(redis, life.worker, { withinMs: silentMs, againMs: askAgainMs });
  return status?.instance === instance;
}
