import { createHash } from "node:crypto";
import { type ArtifactRef, Fault, redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { type ArtifactRecord, artifactRecord, inRedis } from "./artifact-scripts.ts";
import type { ByteRange, ByteStore } from "./byte-store.ts";

/** The facts of an artifact that its reference does not have. */
export interface ArtifactMeta extends ArtifactRef {
  readonly tenant: string;
  readonly sandboxKey: string;
  readonly agent: string;
  readonly session: string;
  readonly jobId: string;
  readonly createdAtMs: number;
  /** `redis`, or the id of the directory that has the bytes. */
  readonly place: string;
}

/** Reads artifacts by their id. The larger ones need access to the directory that has them. */
export class ArtifactReader {
  readonly #redis: Redis;
  readonly #store: ByteStore | undefined;

  constructor(redis: Redis, store?: ByteStore) {
    this.#redis = redis;
    this.#store = store;
  }

  /** Undefined when there is none, or it has expired. */
  async meta(id: string): Promise<ArtifactMeta | undefined> {
    const record = await this.record(id);
    return record && metaOf(id, record);
  }

  /** As stored; also of an expired one only when asked for. */
  async record(id: string, { expired = false } = {}): Promise<ArtifactRecord | undefined> {
    const fields = await this.#redis.hgetall(redisKeys.artifact(id));
    if (fields.path === undefined) return undefined;
    const record = artifactRecord.parse(fields);
    return expired || record.expires > Date.now() ? record : undefined;
  }

  /** The bytes as they are read. Undefined as for `meta`; throws `artifact-elsewhere` before the first byte. */
  async stream(
    id: string,
    range: Partial<ByteRange> = {},
  ): Promise<AsyncGenerator<Uint8Array, void, void> | undefined> {
    const record = await this.record(id);
    if (!record) return undefined;
    const offset = Math.min(range.offset ?? 0, record.size);
    const length = Math.min(range.length ?? record.size, record.size - offset);
    return this.#whole(id, await this.#source(id, record, { offset, length }), length);
  }

  /** All of it, and checked against its hash. */
  async bytes(id: string): Promise<Buffer | undefined> {
    const [meta, stream] = [await this.meta(id), await this.stream(id)];
    if (!meta || !stream) return undefined;
    const parts: Uint8Array[] = [];
    for await (const part of stream) parts.push(part);
    const bytes = Buffer.concat(parts);
    if (createHash("sha256").update(bytes).digest("hex") !== meta.sha256) {
      throw new Fault("artifact-missing", { artifact: id, detail: "other bytes are in their place" });
    }
    return bytes;
  }

  async #source(id: string, record: ArtifactRecord, range: ByteRange): Promise<AsyncIterable<Uint8Array>> {
    if (record.place === inRedis) return this.#inRedis(record.sha256, range);
    const here = await this.#store?.id();
    if (this.#store && here === record.place) return this.#store.read(record.file, range);
    const detail = here === undefined ? "this process has none" : `this process has ${here}`;
    throw new Fault("artifact-elsewhere", { artifact: id, place: record.place, detail });
  }

  async *#inRedis(sha256: string, { offset, length }: ByteRange): AsyncGenerator<Uint8Array, void, void> {
    if (length === 0) return;
    yield await this.#redis.getrangeBuffer(redisKeys.artifactBytes(sha256), offset, offset + length - 1);
  }

  async *#whole(
    id: string,
    source: AsyncIterable<Uint8Array>,
    length: number,
  ): AsyncGenerator<Uint8Array, void, void> {
    let seen = 0;
    for await (const chunk of source) {
      seen += chunk.length;
      yield chunk;
    }
    if (seen < length) {
      throw new Fault("artifact-missing", { artifact: id, detail: `${seen} of ${length} bytes are there` });
    }
  }
}

export function refOf(id: string, { path, size, sha256, mime, expires }: ArtifactRecord): ArtifactRef {
  return { id, path, size, sha256, mime, expiresAtMs: expires };
}

function metaOf(id: string, record: ArtifactRecord): ArtifactMeta {
  const { tenant, key, agent, session, job, at, place } = record;
  return {
    ...refOf(id, record),
    tenant,
    sandboxKey: key,
    agent,
    session,
    jobId: job,
    createdAtMs: at,
    place,
  };
}
