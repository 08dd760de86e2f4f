import { redisKeys } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";

const claim = new Script({
  name: "webhook-claim",
  file: new URL("../../lua/webhook-claim.lua", import.meta.url),
  parse: (reply) => z.array(z.tuple([z.string()]).rest(z.string())).parse(reply),
});
const release = new Script({
  name: "webhook-release",
  file: new URL("../../lua/webhook-release.lua", import.meta.url),
  parse: (reply) => z.literal(1).parse(reply),
});

/** Longer than a call takes: another gateway makes the calls of one that died. */
const holdMs = 60_000;
const lookAgainMs = 1_000;

export interface ClaimedCalls {
  /** The tenant; nothing for an admin's. */
  readonly owner: string;
  /** Ids of batches. */
  readonly batches: readonly string[];
}

/**
 * Calls of webhooks by owner. Only a few of one owner are made at a time, by all gateways together, so that an owner whose receivers
 * are slow delays its own calls only.
 *
 *   batch over ──▶ waiting ──claim──▶ being made ──remove, again──▶ released
 */
export class WebhookQueue {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async claim({
    owners,
    ofEach,
  }: {
    readonly owners: number;
    readonly ofEach: number;
  }): Promise<ClaimedCalls[]> {
    const taken = await claim.run(
      this.#redis,
      [redisKeys.webhookOwners],
      [Date.now(), holdMs, owners, ofEach, lookAgainMs],
    );
    return taken.map(([owner, ...batches]) => ({ owner, batches }));
  }

  async again(owner: string, batch: string, atMs: number): Promise<void> {
    await this.#redis.zadd(redisKeys.webhooksOf(owner), "XX", atMs, batch);
  }

  async remove(owner: string, batch: string): Promise<void> {
    await this.#redis.zrem(redisKeys.webhooksOf(owner), batch);
  }

  async release(owner: string): Promise<void> {
    const keys = [redisKeys.webhookOwners, redisKeys.webhooksOf(owner), redisKeys.webhookHold(owner)];
    await release.run(this.#redis, keys, [owner]);
  }
}
