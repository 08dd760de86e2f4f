import type { AuditLog } from "@berth/ledger";
import type { FastifyRequest } from "fastify";

/** What the audit log records, by action. */
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

export type Audit = AuditLog<AuditAction>;

/** The principal and address of an entry. */
export function noted(
  request: FastifyRequest,
  target: string,
): { actor: string; target: string; from: string } {
  return { actor: request.principal.id, target, from: request.callerAddress };
}
