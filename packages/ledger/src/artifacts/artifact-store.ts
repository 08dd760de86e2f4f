import { createHash } from "node:crypto";
import {
  type ArtifactRef,
  type ArtifactRefusal,
  byteSize,
  Fault,
  redisKeys,
  type SandboxKey,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { readLease } from "../leases/lease-record.ts";
import { redisNow } from "../redis-now.ts";
import { isCluster } from "../slots.ts";
import { type ArtifactLimits, defaultArtifactLimits } from "./artifact-limits.ts";
import { ArtifactReader } from "./artifact-reader.ts";
import {
  type AddAnswer,
  type ArtifactRecord,
  addArtifact,
  artifactKeys,
  dropArtifact,
  inRedis,
} from "./artifact-scripts.ts";
import { type ArtifactUsage, readArtifactUsage } from "./artifact-usage.ts";
import type { ByteStore } from "./byte-store.ts";
import { JobArtifacts } from "./job-artifacts.ts";
import { MeasuredBytes, TooLarge } from "./measured-bytes.ts";
import { mimeOf, sniffedBytes } from "./mime.ts";
import { splitHead } from "./split-head.ts";
import { StoredFiles } from "./stored-files.ts";

/** The owner of an artifact. */
export interface ArtifactOwner {
  readonly tenant: string;
  readonly key: SandboxKey;
  readonly agent: string;
  readonly session: string;
  readonly jobId: string;
  /** The fencing token, compared with the sandbox's lease. Absent: not compared. */
  readonly holder?: ArtifactHolder | undefined;
}

export interface ArtifactHolder {
  readonly epoch: number;
  readonly instance: string;
}

export interface PutOptions {
  /** Kept for longer, and found under its path by the same conversation. */
  readonly persist?: boolean;
  /** The size, if known in advance: an artifact that would be refused is then not written. */
  readonly expectedBytes?: number;
}

export type PutAnswer = { readonly kept: ArtifactRef } | { readonly refused: ArtifactRefusal };

export interface SweepReport {
  readonly expired: number;
  readonly removedFiles: number;
}

interface Content {
  readonly size: number;
  readonly sha256: string;
  readonly mime: string;
  readonly place: string;
  readonly file: string;
  readonly bytes: Buffer | string;
}

/**
 * Files that jobs leave for others, until they expire.
 *
 *   artifact:  added ──expired, replaced or removed──▶ dropped
 *   its file:  draft ──▶ committed ──▶ adopted by an artifact ──the last one dropped──▶ garbage ──▶ removed
 *                └──────────┴── not adopted within the hour ─────────────────────────────▲
 *
 * Promises: an artifact that was added has its bytes until it expires, and counts against its tenant's quota until it is
 * dropped; the same content is stored once; whatever dies between two steps, the sweep finds what is left. It does not follow changes
 * of a file: it keeps the bytes that it read.
 */
export class ArtifactStore {
  readonly limits: ArtifactLimits;
  readonly reader: ArtifactReader;
  readonly #redis: Redis;
  readonly #files: StoredFiles;

  constructor(redis: Redis, store: ByteStore, limits: Partial<ArtifactLimits> = {}) {
    this.#redis = redis;
    this.#files = new StoredFiles(redis, store);
    this.limits = { ...defaultArtifactLimits, ...limits };
    this.reader = new ArtifactReader(redis, store);
  }

  /** The store as one job uses it. */
  forJob(owner: ArtifactOwner): JobArtifacts {
    return new JobArtifacts(this.#redis, this, owner);
  }

  /** Reads the source to its end, or to the first byte beyond a limit. Rethrows its errors; a limit is an answer. */
  async put(
    owner: ArtifactOwner,
    path: string,
    source: AsyncIterable<Uint8Array>,
    options: PutOptions = {},
  ): Promise<PutAnswer> {
    const { maxBytes } = this.limits;
    const refused = await this.#refusedInAdvance(owner, path, options);
    if (refused) return { refused };
    const measured = new MeasuredBytes(maxBytes);
    try {
      return await this.#store(owner, path, measured, source, options);
    } catch (error) {
      if (error instanceof TooLarge) return { refused: tooLarge(path, maxBytes) };
      throw error;
    }
  }

  usage(tenant: string): Promise<ArtifactUsage> {
    return readArtifactUsage(this.#redis, tenant);
  }

  /** Returns whether there was one. */
  async remove(
    id: string,
    { holder }: { readonly holder?: ArtifactHolder | undefined } = {},
  ): Promise<boolean> {
    const record = await this.reader.record(id, { expired: true });
    return record !== undefined && (await this.#drop(id, record, { holder, onlyExpired: false }));
  }

  /** Drops everything that the conversations of a sandbox have persisted. Other artifacts stay until they expire. */
  async forgetPersisted(
    key: SandboxKey,
    { holder }: { readonly holder?: ArtifactHolder | undefined } = {},
  ): Promise<void> {
    for (const conversation of await this.#redis.smembers(redisKeys.conversations(key))) {
      for (const id of await this.#redis.hvals(conversation)) await this.remove(id, { holder });
    }
  }

  /** Drops what has expired and removes files without a reference, some of each. Any number of processes may do it at once. */
  async sweep(atMost = 100): Promise<SweepReport> {
    const nowMs = await redisNow(this.#redis);
    const due = await this.#redis.zrangebyscore(redisKeys.artifactExpiry, "-inf", nowMs, "LIMIT", 0, atMost);
    let expired = 0;
    for (const id of due) {
      const record = await this.reader.record(id, { expired: true });
      if (!record) await this.#redis.zrem(redisKeys.artifactExpiry, id);
      else if (await this.#drop(id, record, { onlyExpired: true })) expired++;
    }
    return { expired, removedFiles: await this.#files.sweep(atMost) };
  }

  async #refusedInAdvance(
    { tenant }: ArtifactOwner,
    path: string,
    { expectedBytes, persist }: PutOptions,
  ): Promise<ArtifactRefusal | undefined> {
    if (expectedBytes === undefined) return undefined;
    if (expectedBytes > this.limits.maxBytes) return tooLarge(path, this.limits.maxBytes);
    const used = await this.usage(tenant);
    const passes = used.bytes + expectedBytes > this.limits.quotaBytes;
    // A persisted file may replace one that is as large.
    return passes && !persist ? this.#overQuota(path, used) : undefined;
  }

  async #store(
    owner: ArtifactOwner,
    path: string,
    measured: MeasuredBytes,
    source: AsyncIterable<Uint8Array>,
    options: PutOptions,
  ): Promise<PutAnswer> {
    const { inRedisBytes } = this.limits;
    const { head, all } = await splitHead(measured.through(source), Math.max(inRedisBytes, sniffedBytes));
    const mime = mimeOf(path, head);
    if (!all && head.length <= inRedisBytes) {
      const content = { size: head.length, sha256: measured.sha256(), mime };
      return this.#add(owner, path, { ...content, place: inRedis, file: "", bytes: head }, options);
    }
    const placed = await this.#files.write(all ?? only(head), () => measured.sha256());
    // If the answer gets lost, this process cannot know whether the file was adopted: the index decides.
    return this.#add(owner, path, { size: measured.size, mime, ...placed, bytes: "" }, options);
  }

  async #add(owner: ArtifactOwner, path: string, content: Content, options: PutOptions): Promise<PutAnswer> {
    const { key, agent, session, jobId, tenant, holder } = owner;
    const { size, sha256, mime, place, file, bytes } = content;
    const { quotaBytes, quotaCount, keptMs, persistedMs, maxPersisted } = this.limits;
    const { persist = false } = options;
    const id = persist
      ? idOf("persisted", key, tenant, agent, session, path, sha256)
      : idOf("job", key, tenant, jobId, path, sha256);
    const before = persist ? await this.#persistedAt(owner, path) : undefined;
    await this.#compare(key, holder).catch(async (error: unknown) => {
      if (file !== "") await this.#files.discard({ place, file }).catch(() => {});
      throw error;
    });
    const answer = await addArtifact.run(this.#redis, artifactKeys(id, { ...owner, place, sha256 }), [
      ...[id, tenant, size, quotaBytes, quotaCount, persist ? persistedMs : keptMs, place, file, bytes],
      ...[
        holder ? redisKeys.lease(key) : "",
        persist ? path : "",
        maxPersisted,
        before?.id ?? "",
        before?.record?.size ?? 0,
      ],
      ...[holder?.epoch ?? "", holder?.instance ?? ""],
      ...["path", path, "sha256", sha256, "mime", mime, "key", key, "agent", agent, "session", session],
      ...["job", jobId],
    ]);
    if (answer.answer === "changed") return this.#add(owner, path, content, options);
    if (answer.answer === "added" && answer.place === place && answer.file !== file)
      await this.#files.repair(file, answer.file);
    if (file !== "" && !(answer.answer === "added" && answer.file === file))
      await this.#files.discard({ place, file }).catch(() => {});
    if (answer.answer !== "added") return { refused: this.#refusal(owner, path, answer) };
    if (before?.record && before.id !== id)
      await this.#drop(before.id, before.record, { onlyExpired: false });
    return { kept: { id, path, size, sha256, mime, expiresAtMs: answer.expiresAtMs } };
  }

  async #persistedAt(
    { key, tenant, agent, session }: ArtifactOwner,
    path: string,
  ): Promise<{ id: string; record: ArtifactRecord | undefined } | undefined> {
    const id = await this.#redis.hget(redisKeys.persisted(key, tenant, agent, session), path);
    return id === null ? undefined : { id, record: await this.reader.record(id, { expired: true }) };
  }

  async #drop(
    id: string,
    record: ArtifactRecord,
    { onlyExpired, holder }: { readonly onlyExpired: boolean; readonly holder?: ArtifactHolder | undefined },
  ): Promise<boolean> {
    await this.#compare(record.key, holder);
    const lease = holder ? redisKeys.lease(record.key) : "";
    const about = [id, record.place, onlyExpired ? "1" : "0", lease];
    const args = [...about, holder?.epoch ?? "", holder?.instance ?? ""];
    const dropped = await dropArtifact.run(this.#redis, artifactKeys(id, record), args);
    if (dropped.answer === "fenced") throw fenced(record.key, holder, dropped.epoch);
    if (dropped.answer === "kept") return false;
    // Removed now if this process has the directory; otherwise by the sweep of a process that has it.
    if (dropped.file !== "" && (await this.#files.isHere(record.place)))
      await this.#files.discard({ place: record.place, file: dropped.file }).catch(() => {});
    return true;
  }

  /** On a cluster the artifact scripts cannot compare the lease: it is in another slot. */
  async #compare(key: SandboxKey, holder: ArtifactHolder | undefined): Promise<void> {
    if (!holder || !(await isCluster(this.#redis))) return;
    const { epoch, instance } = await readLease(this.#redis, key);
    if (epoch !== holder.epoch || instance !== holder.instance) throw fenced(key, holder, epoch);
  }

  #refusal(
    { key, holder }: ArtifactOwner,
    path: string,
    answer: Exclude<AddAnswer, { answer: "added" | "changed" }>,
  ): ArtifactRefusal {
    switch (answer.answer) {
      case "quota":
        return this.#overQuota(path, answer);
      case "too-many": {
        const reason = `this conversation has ${answer.paths} persisted files already; remove some`;
        return { path, code: "too-many", reason };
      }
      case "swept":
        return { path, code: "not-kept", reason: "storing it took so long that it was given up" };
      case "fenced":
        throw fenced(key, holder, answer.epoch);
    }
  }

  #overQuota(path: string, used: { readonly bytes: number; readonly artifacts: number }): ArtifactRefusal {
    const { quotaBytes, quotaCount } = this.limits;
    const bytes = `${byteSize(used.bytes)} of ${byteSize(quotaBytes)}`;
    const reason = `it does not fit the tenant's artifact quota (used: ${bytes}, ${used.artifacts} of ${quotaCount} artifacts); remove some, or wait until they expire`;
    return { path, code: "quota", reason };
  }
}

/** The same file of the same job is the same artifact, however often the job runs. Cannot be guessed without the job's id. */
function idOf(...parts: readonly string[]): string {
  return createHash("sha256").update(parts.join("\0")).digest("base64url").slice(0, 32);
}

function tooLarge(path: string, maxBytes: number): ArtifactRefusal {
  return { path, code: "too-large", reason: `an artifact has at most ${byteSize(maxBytes)}` };
}

function fenced(sandboxKey: string, holder: ArtifactHolder | undefined, highestEpoch: number): Fault {
  return new Fault("lease-lost", { sandboxKey, epoch: holder?.epoch ?? 0, highestEpoch });
}

async function* only(chunk: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield chunk;
}
