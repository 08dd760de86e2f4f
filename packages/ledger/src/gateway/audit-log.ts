import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";

export interface AuditEntry {
  readonly id: string;
  readonly atMs: number;
  readonly action: string;
  readonly actor: string;
  readonly target: string;
  readonly from: string;
}

const kept = 10_000;

/** Who did what to the fleet. Never what was in a request. */
export class AuditLog<Action extends string = string> {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Awaited before the answer: without an audit entry the call does not report success. */
  async note(action: Action, by: { actor: string; target: string; from: string }): Promise<void> {
    const fields = ["action", action, "actor", by.actor, "target", by.target, "from", by.from];
    await this.#redis.xadd(redisKeys.audit, "MAXLEN", "~", kept, "*", ...fields);
  }

  /** The latest first, those before an entry's id. */
  async list(options: {
    readonly before?: string | undefined;
    readonly limit: number;
  }): Promise<AuditEntry[]> {
    const from = options.before === undefined ? "+" : `(${options.before}`;
    const entries = await this.#redis.xrevrange(redisKeys.audit, from, "-", "COUNT", options.limit);
    return entries.map(([id, fields]) => {
      const named = Object.fromEntries(pairs(fields));
      const { action = "", actor = "", target = "", from: address = "" } = named;
      return { id, atMs: Number(id.split("-")[0]), action, actor, target, from: address };
    });
  }
}

function pairs(fields: readonly string[]): [string, string][] {
  return Array.from({ length: fields.length / 2 }, (_, index) => [
    fields[2 * index] ?? "",
    fields[2 * index + 1] ?? "",
  ]);
}
