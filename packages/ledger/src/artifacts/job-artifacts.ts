import { type ArtifactRef, Fault, redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { refOf } from "./artifact-reader.ts";
import type { ArtifactOwner, ArtifactStore, PutAnswer } from "./artifact-store.ts";
import type { ByteRange } from "./byte-store.ts";

/** Lookups sent to Redis at once. */
const lookupsAtOnce = 50;

export interface PersistedFile {
  readonly ref: ArtifactRef;
  /** Throws `artifact-missing` if it has expired since. */
  stream(range?: Partial<ByteRange>): Promise<AsyncIterable<Uint8Array>>;
}

/** The store as one job uses it: the artifacts it keeps, and the files its conversation has persisted. */
export class JobArtifacts {
  readonly maxBytes: number;
  readonly #redis: Redis;
  readonly #store: ArtifactStore;
  readonly #owner: ArtifactOwner;
  #kept = 0;

  constructor(redis: Redis, store: ArtifactStore, owner: ArtifactOwner) {
    this.#redis = redis;
    this.#store = store;
    this.#owner = owner;
    this.maxBytes = store.limits.maxBytes;
  }

  /** Does not read the source if it would be refused anyway. */
  async keep(path: string, source: AsyncIterable<Uint8Array>, expectedBytes: number): Promise<PutAnswer> {
    const { maxPerJob } = this.#store.limits;
    if (this.#kept >= maxPerJob)
      return { refused: { path, code: "too-many", reason: `a job keeps at most ${maxPerJob} artifacts` } };
    this.#kept++;
    let kept = false;
    try {
      const answer = await this.#store.put(this.#owner, path, source, { expectedBytes });
      kept = "kept" in answer;
      return answer;
    } finally {
      if (!kept) this.#kept--;
    }
  }

  /** If it is refused, the earlier version is removed as well: a reader must not mistake it for the new one. */
  async persist(path: string, bytes: Uint8Array): Promise<PutAnswer> {
    const source = (async function* () {
      yield bytes;
    })();
    const options = { persist: true, expectedBytes: bytes.length };
    const answer = await this.#store.put(this.#owner, path, source, options);
    if ("refused" in answer) await this.forget(path, { recursive: false });
    return answer;
  }

  /** An artifact of any job of the tenant. Undefined if it is another tenant's or does not exist. */
  async artifact(id: string): Promise<PersistedFile | undefined> {
    const record = await this.#store.reader.record(id);
    if (record?.tenant !== this.#owner.tenant) return undefined;
    return { ref: refOf(id, record), stream: (range) => this.#stream(id, range) };
  }

  async persisted(path: string): Promise<PersistedFile | undefined> {
    const id = await this.#redis.hget(this.#conversation, path);
    const record = id === null ? undefined : await this.#store.reader.record(id);
    if (id === null || !record) return undefined;
    return { ref: refOf(id, record), stream: (range) => this.#stream(id, range) };
  }

  /** The persisted artifacts at a path and beneath it, by path; all for the empty path. */
  async persistedBelow(path: string): Promise<ArtifactRef[]> {
    const entries = Object.entries(await this.#redis.hgetall(this.#conversation))
      .filter(([at]) => path === "" || at === path || at.startsWith(`${path}/`))
      .sort(([a], [b]) => (a < b ? -1 : 1));
    const found: ArtifactRef[] = [];
    for (let at = 0; at < entries.length; at += lookupsAtOnce) {
      const some = entries.slice(at, at + lookupsAtOnce).map(async ([, id]) => {
        const record = await this.#store.reader.record(id);
        return record && refOf(id, record);
      });
      found.push(...(await Promise.all(some)).filter((ref) => ref !== undefined));
    }
    return found;
  }

  /** Returns the artifacts that it removed. */
  async forget(path: string, { recursive }: { readonly recursive: boolean }): Promise<ArtifactRef[]> {
    const below = await this.persistedBelow(path);
    const forgotten = recursive ? below : below.filter((ref) => ref.path === path);
    for (const { id } of forgotten) await this.#store.remove(id, { holder: this.#owner.holder });
    return forgotten;
  }

  get #conversation(): string {
    const { key, tenant, agent, session } = this.#owner;
    return redisKeys.persisted(key, tenant, agent, session);
  }

  async #stream(id: string, range?: Partial<ByteRange>): Promise<AsyncIterable<Uint8Array>> {
    const stream = await this.#store.reader.stream(id, range);
    if (!stream) throw new Fault("artifact-missing", { artifact: id, detail: "it expired just now" });
    return stream;
  }
}
