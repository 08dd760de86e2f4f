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

/** Longer than a call takes. After this, another gateway makes the calls of a gateway that died. */
const holdMs = 60_000;
const lookAgainMs = 1_000;

export interface ClaimedCalls {
  /** The tenant; empty for an admin key. */
  readonly owner: string;
  /** Ids of batches. */
  readonly batches: readonly string[];
}

/**
 * Webhook calls by owner. All gateways together make only a few calls of one owner at a time, so that an owner with slow receivers
 * delays only its own calls.
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
