import { redisKeys, type WorkerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { FieldOf } from "../key-record.ts";
import type { fleetRecords } from "./records.ts";

/** What a worker's process publishes with each heartbeat. The fields in Redis have these names. */
export interface WorkerStatus {
  readonly host: string;
  /** The same for every process of a machine until it is started again. */
  readonly machine: string;
  readonly pid: number;
  readonly pools: readonly string[];
  readonly slots: number;
  readonly version: string;
  readonly held: number;
  readonly running: number;
  /** Containers that it parked and that no worker has adopted since, and what memory they hold. */
  readonly parked: number;
  readonly parkedBytes: number;
  /** Containers that it started ahead of time and that wait for a sandbox; and why there can be none, or empty. */
  readonly warm: number;
  readonly warmWhy: string;
  /** Why init counts the files of new workspaces instead of the file system; empty when the file system does, or init was chosen. */
  readonly quotaWhy: string;
  /** `NAME (NETWORK)` of the profiles whose commands reach networks that no rule filters. */
  readonly openNetworks: readonly string[];
  /** What carried commands and files of the sandbox that was opened last; `none` before the first. */
  readonly link: string;
  /** `ok`, or why nothing may grow in its sandboxes, such as a disk that is nearly full. */
  readonly disk: string;
  /** `ok`, or why it cannot start sandboxes. */
  readonly health: string;
  readonly load: number;
}

/** A worker as people and autoscalers see it. */
export interface WorkerRecord extends Omit<WorkerStatus, "machine" | "pid"> {
  readonly id: string;
  readonly lastSeenMs: number;
}

/** Which process had a worker id last. */
export type WorkerProcess = Pick<WorkerStatus, "host" | "machine"> & { readonly pid: string };

/** `instance` is written by `claim.lua`. */
type WorkerField = FieldOf<typeof fleetRecords.worker>;

export function workerFields({
  pools,
  openNetworks,
  ...status
}: WorkerStatus): Record<Exclude<WorkerField, "instance">, string | number> {
  return { ...status, pools: pools.join(","), openNetworks: openNetworks.join(",") };
}

/** Undefined when its record expired meanwhile. */
export function readWorker(
  id: string,
  hash: Record<string, string>,
  lastSeenMs: number,
): WorkerRecord | undefined {
  if (hash.slots === undefined) return undefined;
  return {
    id,
    host: hash.host ?? "",
    pools: (hash.pools ?? "").split(","),
    slots: Number(hash.slots),
    held: Number(hash.held ?? 0),
    running: Number(hash.running ?? 0),
    parked: Number(hash.parked ?? 0),
    parkedBytes: Number(hash.parkedBytes ?? 0),
    warm: Number(hash.warm ?? 0),
    warmWhy: hash.warmWhy ?? "",
    quotaWhy: hash.quotaWhy ?? "",
    openNetworks: (hash.openNetworks ?? "").split(",").filter((one) => one !== ""),
    link: hash.link ?? "none",
    disk: hash.disk ?? "ok",
    health: hash.health ?? "ok",
    load: Number(hash.load ?? 0),
    version: hash.version ?? "",
    lastSeenMs,
  };
}

export async function readWorkerProcess(redis: Redis, worker: WorkerId): Promise<WorkerProcess> {
  const [host, pid, machine] = await redis.hmget(redisKeys.worker(worker), "host", "pid", "machine");
  return { host: host ?? "", pid: pid ?? "", machine: machine ?? "" };
}

export async function readWorkerInstance(redis: Redis, worker: WorkerId): Promise<string | undefined> {
  return (await redis.hget(redisKeys.worker(worker), "instance")) ?? undefined;
}
