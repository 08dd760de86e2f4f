import {
  Fault,
  type GivenNames,
  redisKeys,
  type SandboxKey,
  type SetUpReport,
  setUpReport,
  type WorkerId,
} from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import type { FieldOf } from "../key-record.ts";
import { readNames } from "../names.ts";
import type { leaseRecords } from "./records.ts";

/** The pool of a sandbox if no producer named one. */
export const defaultPool = "default";

type LeaseField = FieldOf<typeof leaseRecords.lease>;

const fields = [
  "worker",
  "instance",
  "epoch",
  "deadline",
  "home",
  "pool",
  "trouble",
  "setup",
  "names",
  "destroyed",
] as const satisfies readonly LeaseField[];

/**
 * Redis' record of a sandbox, apart from its jobs. The scripts in `lua` write it; this file reads its fields for TypeScript.
 */
export interface LeaseRecord {
  /** Undefined if it was released or never taken. The lease of this worker may have expired. */
  readonly worker: WorkerId | undefined;
  readonly instance: string | undefined;
  /** 0 until it is first taken. */
  readonly epoch: number;
  /** By Redis' clock. */
  readonly deadlineMs: number;
  readonly home: string | undefined;
  readonly pool: string;
  /** Why its sandbox could not be started. */
  readonly trouble: string | undefined;
  /** How the set-up command of its last container ended, if its profile has one. */
  readonly setUp: SetUpReport | undefined;
  /** The parts of its key, as the producer gave them. */
  readonly names: GivenNames | undefined;
  /** Its workspace was removed, and nothing was started since. */
  readonly isDestroyed: boolean;
}

export async function readLease(redis: Redis, key: SandboxKey): Promise<LeaseRecord> {
  const read = await redis.hmget(redisKeys.lease(key), ...fields);
  const [worker, instance, epoch, deadline, home, pool, trouble, setUp, names, destroyed] = read;
  return {
    worker: (worker || undefined) as WorkerId | undefined,
    instance: instance || undefined,
    epoch: Number(epoch ?? 0),
    deadlineMs: Number(deadline ?? 0),
    home: home ?? undefined,
    pool: pool ?? defaultPool,
    trouble: trouble ?? undefined,
    setUp: readSetUp(setUp),
    names: readNames(names),
    isDestroyed: typeof destroyed === "string",
  };
}

function readSetUp(text: string | null | undefined): SetUpReport | undefined {
  if (!text) return undefined;
  try {
    return setUpReport.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

const leaseNote = new Script({
  name: "lease-note",
  file: new URL("../../lua/lease-note.lua", import.meta.url),
  parse: (reply) =>
    z
      .union([z.tuple([z.literal("noted"), z.string()]), z.tuple([z.literal("fenced"), z.number()])])
      .parse(reply),
});

/** Names a sandbox for a note by its holder, or by its last holder. */
export interface Noter {
  readonly key: SandboxKey;
  readonly epoch: number;
}

/** Changes nothing once another process has taken the sandbox. */
function note(
  redis: Redis,
  { key, epoch }: Noter,
  how: "set" | "set-once" | "remove",
  field: LeaseField,
  value = "",
) {
  return leaseNote.run(redis, [redisKeys.lease(key)], [epoch, how, field, value]);
}

export async function noteSetUp(redis: Redis, noter: Noter, report: SetUpReport): Promise<void> {
  await note(redis, noter, "set", "setup", JSON.stringify(report));
}

/** Makes that host the sandbox's home, unless it has one. Returns its home. Throws `fenced` if another process holds the sandbox. */
export async function giveHome(redis: Redis, noter: Noter, host: string): Promise<string> {
  const [word, found] = await note(redis, noter, "set-once", "home", host);
  if (word === "noted") return found;
  throw new Fault("fenced", { sandboxKey: noter.key, epoch: noter.epoch, highestEpoch: found });
}

export async function readHome(redis: Redis, key: SandboxKey): Promise<string | undefined> {
  return (await redis.hget(redisKeys.lease(key), "home" satisfies LeaseField)) || undefined;
}

/** The worker that holds the sandbox at `nowMs`, by Redis' clock. */
export function holderIn({ worker, deadlineMs }: LeaseRecord, nowMs: number): WorkerId | undefined {
  return deadlineMs > nowMs ? worker : undefined;
}

/** Why the sandbox's jobs wait, for `why`. No decision depends on it. */
export async function noteTrouble(redis: Redis, noter: Noter, trouble: string | undefined): Promise<void> {
  if (trouble === undefined) await note(redis, noter, "remove", "trouble");
  else await note(redis, noter, "set", "trouble", trouble.slice(0, 500));
}
