import type { BlockList } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { AddressRefused } from "@berth/egress";
import { type BatchStore, type ClaimedCalls, type StoredBatch, WebhookQueue } from "@berth/ledger";
import type { Redis } from "@berth/redis";
import type { Logger } from "pino";
import { batchView } from "../batches/batch-view.ts";
import { post } from "./post.ts";
import type { WebhookSecrets } from "./webhook-secrets.ts";

export interface SenderParts {
  readonly redis: Redis;
  readonly batches: BatchStore;
  readonly secrets: WebhookSecrets;
  readonly allowed: BlockList;
  readonly log: Logger;
}

const lookEveryMs = 1_000;
/** Per gateway. */
const ownersAtOnce = 32;
/** Over all gateways. */
const ofOwnerAtOnce = 4;
/** Backoff: 5 s, 10 s, 20 s … an hour; about eight hours in total. */
const firstPauseMs = 5_000;
const longestPauseMs = 3_600_000;
const triesMost = 16;

/** Calls the webhooks of finished batches until the receiver answers 2xx. Delivery is at-least-once: receivers deduplicate by `webhook-id`. */
export class WebhookSender {
  readonly #parts: SenderParts;
  readonly #queue: WebhookQueue;
  readonly #stopping = new AbortController();
  /** By owner. */
  readonly #calling = new Map<string, Promise<void>>();
  #loop: Promise<void> | undefined;

  constructor(parts: SenderParts) {
    this.#parts = parts;
    this.#queue = new WebhookQueue(parts.redis);
  }

  start(): void {
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await Promise.all(this.#calling.values());
  }

  async #run(): Promise<void> {
    const { log } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await sleep(lookEveryMs, undefined, { signal }).catch(() => {});
      const owners = ownersAtOnce - this.#calling.size;
      if (signal.aborted || owners <= 0) continue;
      try {
        for (const claimed of await this.#queue.claim({ owners, ofEach: ofOwnerAtOnce }))
          this.#serve(claimed);
      } catch (error) {
        log.warn({ event: "webhooks.look-failed", err: error });
      }
    }
  }

  /** Owners do not wait for each other. */
  #serve({ owner, batches }: ClaimedCalls): void {
    const serving = this.#callAll(owner, batches).finally(() => this.#calling.delete(owner));
    this.#calling.set(owner, serving);
  }

  async #callAll(owner: string, batches: readonly string[]): Promise<void> {
    const { log } = this.#parts;
    try {
      await Promise.all(batches.map((id) => this.#call(owner, id)));
      await this.#queue.release(owner);
    } catch (error) {
      // The claim expires, and a gateway calls the webhook again.
      log.warn({ event: "webhooks.look-failed", err: error });
    }
  }

  async #call(owner: string, id: string): Promise<void> {
    const { batches } = this.#parts;
    const batch = await batches.get(id);
    if (batch?.webhook === undefined) return this.#queue.remove(owner, id);
    const problem = await this.#problemOf(batch, batch.webhook);
    const tries = batch.webhookTries + 1;
    if (problem === undefined || tries >= triesMost) {
      const state = problem === undefined ? "delivered" : "given-up";
      await batches.noteWebhook(id, { state, tries, problem });
      return this.#queue.remove(owner, id);
    }
    await batches.noteWebhook(id, { state: "waiting", tries, problem });
    const pauseMs = Math.min(firstPauseMs * 2 ** (tries - 1), longestPauseMs) * (0.75 + Math.random() / 2);
    await this.#queue.again(owner, id, Date.now() + Math.round(pauseMs));
  }

  /** Undefined: delivered. */
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
      log.info({ event: "webhook.failed", batch: batch.id, problem: (error as Error).message });
      return problemFor(error);
    }
  }
}

/** The error as the tenant sees it. Hides addresses and DNS results, which would reveal names of the operator's network. */
function problemFor(error: unknown): string {
  if (error instanceof AddressRefused) return "its address is not one that webhooks may reach";
  const { name, code = name } = error as Error & { readonly code?: string };
  return code === "TimeoutError" ? "it did not answer in 10 s" : `it could not be reached (${code})`;
}
