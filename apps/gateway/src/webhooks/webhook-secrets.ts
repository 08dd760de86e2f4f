import { createHmac, randomBytes } from "node:crypto";
import { webhookSecret } from "@berth/ledger";
import type { Redis } from "@berth/redis";

/** Signs like Standard Webhooks, so that their libraries can verify. Each owner has its own secret. */
export class WebhookSecrets {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** As `whsec_…`. The owner is a tenant, or empty for the admins. */
  async of(owner: string): Promise<string> {
    return `whsec_${(await this.#bytes(owner)).toString("base64")}`;
  }

  async headers(owner: string, id: string, body: string): Promise<Record<string, string>> {
    const timestamp = String(Math.floor(Date.now() / 1_000));
    const signature = createHmac("sha256", await this.#bytes(owner))
      .update(`${id}.${timestamp}.${body}`)
      .digest("base64");
    return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
  }

  async #bytes(owner: string): Promise<Buffer> {
    const made = randomBytes(32).toString("base64");
    const known = await webhookSecret(this.#redis, made);
    return createHmac("sha256", Buffer.from(known, "base64")).update(`webhook:${owner}`).digest();
  }
}
