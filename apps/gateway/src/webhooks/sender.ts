import type { BlockList } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type BatchStore, claimDue, type StoredBatch } from "@berth/ledger";
import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { Logger } from "pino";
import { batchView } from "../batches/batch-view.ts";
import { AddressRefused } from "./address.ts";
import { post } from "./post.ts";
import type { WebhookSecrets } from "./signature.ts";

export interface SenderParts {
  readonly redis: Redis;
  readonly batches: BatchStore;
  readonly secrets: WebhookSecrets;
  readonly allowed: BlockList;
  readonly log: Logger;
}

const lookEveryMs = 1_000;
/** Longer than a call takes: whoever dies in one leaves it to the next. */
const holdMs = 60_000;
const callsAtOnce = 10;
/** 5 s, 10 s, 20 s … an hour: about eight hours in all. */
const firstPauseMs = 5_000;
const longestPauseMs = 3_600_000;
const triesMost = 16;

/** Calls the webhooks of batches that are over, until somebody answers with a 2xx. At least once: a receiver goes by `webhook-id`. */
export class WebhookSender {
  readonly #parts: SenderParts;
  readonly #stopping = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(parts: SenderParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { redis, log } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await sleep(lookEveryMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      try {
        const due = await claimDue(redis, redisKeys.webhooks, { holdMs, limit: callsAtOnce });
        await Promise.all(due.map((id) => this.#call(id)));
      } catch (error) {
        log.warn({ event: "webhooks.look-failed", err: error });
      }
    }
  }

  async #call(id: string): Promise<void> {
    const { redis, batches } = this.#parts;
    const batch = await batches.get(id);
    if (batch?.webhook === undefined) {
      await redis.zrem(redisKeys.webhooks, id);
      return;
    }
    const problem = await this.#problemOf(batch, batch.webhook);
    const tries = batch.webhookTries + 1;
    if (problem === undefined || tries >= triesMost) {
      await batches.noteWebhook(id, {
        state: problem === undefined ? "delivered" : "given-up",
        tries,
        problem,
      });
      await redis.zrem(redisKeys.webhooks, id);
      return;
    }
    await batches.noteWebhook(id, { state: "waiting", tries, problem });
    const pauseMs = Math.min(firstPauseMs * 2 ** (tries - 1), longestPauseMs) * (0.75 + Math.random() / 2);
    await redis.zadd(redisKeys.webhooks, "XX", Date.now() + Math.round(pauseMs), id);
  }

  /** Undefined: it was taken. */
  async #problemOf(batch: StoredBatch, webhook: string): Promise<string | undefined> {
    const { secrets, allowed, log } = this.#parts;
    const event = { type: "batch.finished", timestamp: new Date().toISOString(), data: batchView(batch) };
    const body = JSON.stringify(event);
    try {
      const status = await post(
        new URL(webhook),
        body,
        await secrets.headers(batch.owner, batch.id, body),
        allowed,
      );
      if (status >= 200 && status < 300) return undefined;
      return `it answered ${status}`;
    } catch (error) {
      const { message, name } = error as Error;
      const problem =
        error instanceof AddressRefused ? message : `it could not be reached (${name}: ${message})`;
      log.info({ event: "webhook.failed", batch: batch.id, problem });
      return problem;
    }
  }
}
