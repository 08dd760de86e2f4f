import { randomBytes } from "node:crypto";
import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { redisNow } from "../redis-now.ts";
import type { ByteStore } from "./byte-store.ts";

/** The sweep leaves a file that is being written alone for this long. After that its writer counts as dead. */
const draftMs = 3_600_000;

export interface StoredFile {
  readonly place: string;
  readonly file: string;
}

/**
 * Files of a byte store, each named in an index in Redis from before it is made until an artifact adopts it, and again from when
 * it loses its last reference until it is removed. If a process dies between two steps, the sweep finds what it left by the
 * index; no directory is ever searched. Once a file is due in the index, no artifact adopts it.
 */
export class StoredFiles {
  readonly #redis: Redis;
  readonly #store: ByteStore;

  constructor(redis: Redis, store: ByteStore) {
    this.#redis = redis;
    this.#store = store;
  }

  /** Writes a file that an artifact adopts later. Calls `sha256` after the last chunk. */
  async write(
    chunks: AsyncGenerator<Uint8Array, void, void>,
    sha256: () => string,
  ): Promise<StoredFile & { readonly sha256: string }> {
    try {
      const place = await this.#store.prepare();
      const nonce = randomBytes(16).toString("hex");
      const draft = this.#store.draftName(nonce);
      try {
        await this.#expectAdoption(place, draft);
        await this.#store.write(draft, chunks);
        const hash = sha256();
        const file = this.#store.finalName(nonce, hash);
        await this.#expectAdoption(place, file);
        await this.#store.commit(draft, file);
        return { place, file, sha256: hash };
      } finally {
        // The draft has its final name by now, or never gets it.
        await this.discard({ place, file: draft }).catch(() => {});
      }
    } finally {
      await chunks.return();
    }
  }

  /** Redis knows this content as another file. If that file was lost, this one replaces it. */
  async repair(file: string, known: string): Promise<void> {
    if (!(await this.#store.has(known))) await this.#store.commit(file, known);
  }

  async discard({ place, file }: StoredFile): Promise<void> {
    await this.#store.remove(file);
    await this.#redis.zrem(redisKeys.artifactGarbage(place), file);
  }

  async isHere(place: string): Promise<boolean> {
    return (await this.#store.id()) === place;
  }

  /** Removes files that are due, at most this many. */
  async sweep(atMost: number): Promise<number> {
    const place = await this.#store.id();
    if (place === undefined) return 0;
    const garbage = redisKeys.artifactGarbage(place);
    const nowMs = await redisNow(this.#redis);
    const due = await this.#redis.zrangebyscore(garbage, "-inf", nowMs, "LIMIT", 0, atMost);
    const failures: unknown[] = [];
    // One file that cannot be removed must not prevent the removal of the others.
    for (const file of due)
      await this.discard({ place, file }).catch((error: unknown) => void failures.push(error));
    if (failures.length > 0) throw failures[0];
    return due.length;
  }

  async #expectAdoption(place: string, file: string): Promise<void> {
    await this.#redis.zadd(redisKeys.artifactGarbage(place), (await redisNow(this.#redis)) + draftMs, file);
  }
}
