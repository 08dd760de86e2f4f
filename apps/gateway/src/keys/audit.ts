import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { FastifyRequest } from "fastify";

/** What is written down, by what was done. */
export type AuditAction =
  | "key.created"
  | "key.revoked"
  | "tenant.paused"
  | "tenant.resumed"
  | "tenant.destroyed"
  | "tenant.granted"
  | "tenant.ungranted"
  | "secret.set"
  | "secret.rotated"
  | "secret.removed"
  | "secrets.reencrypted"
  | "tool.set"
  | "tool.removed"
  | "profile.set"
  | "profile.removed"
  | "profile.rolled-back"
  | "session.destroyed"
  | "snapshot.removed"
  | "worker.drained"
  | "schedule.put"
  | "schedule.paused"
  | "schedule.resumed"
  | "schedule.removed"
  | "dead-letter.redriven"
  | "dead-letter.removed"
  | "batch.cancelled"
  | "job.redriven"
  | "job.approved"
  | "job.refused"
  | "board.login";

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
export class Audit {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Awaited before the answer: without an audit entry the call does not report success. */
  async note(action: AuditAction, by: { actor: string; target: string; from: string }): Promise<void> {
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

/** Who asks and from where, for an entry. */
export function noted(
  request: FastifyRequest,
  target: string,
): { actor: string; target: string; from: string } {
  return { actor: request.principal.id, target, from: request.callerAddress };
}
