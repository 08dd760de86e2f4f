import { createHash } from "node:crypto";
import { type CheckedOrder, checkOrder } from "@berth/client";
import { firstFingerprint } from "@berth/ledger";
import { isFault, type Job, type TenantId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { nanoid } from "nanoid";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { storedId } from "../keys/own-ids.ts";
import {
  agentFor,
  type Principal,
  refuseBeyondKey,
  refuseDestroy,
  refuseUngranted,
  tenantFor,
} from "../keys/principal.ts";
import type { OrderInput } from "../schemas/job.ts";

const idempotencyKeptSeconds = 24 * 3_600;

/** Prefixes of ids that the gateway generates; a caller's own id must not collide with them. */
export const reservedIds = /^(bat_|ik_)/;

export const submissionHeaders = z.object({
  "idempotency-key": z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, { error: "an Idempotency-Key is 1 to 255 printable ASCII characters" })
    .optional()
    .describe("the same key with the same request is carried out once; for a day"),
  traceparent: z
    .string()
    .regex(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/, { error: "not a W3C trace context" })
    .optional()
    .describe("W3C trace context; travels with the job"),
  tracestate: z.string().max(512).optional(),
});
export type SubmissionHeaders = z.infer<typeof submissionHeaders>;

/** Validates an order as a job of the caller's tenant. Throws problems that the caller can fix. */
export function draftOf(
  order: OrderInput,
  principal: Principal,
  { id, headers }: { readonly id?: string | undefined; readonly headers: SubmissionHeaders },
): CheckedOrder {
  const tenant = tenantFor(principal, order.tenant);
  refuseShared(order.scope, principal);
  refuseUngranted(principal, order);
  refuseDestroy(principal, order.request);
  if (order.id !== undefined && reservedIds.test(order.id)) {
    throw new Problem("invalid-request", "ids that begin with bat_ and ik_ are the gateway's own");
  }
  const { id: chosen, ...rest } = order;
  const agent = agentFor(principal, order.agent);
  try {
    const checked = checkOrder(
      {
        ...rest,
        tenant: order.tenant ?? tenant,
        ...(agent === undefined ? {} : { agent }),
        ...traceOf(headers),
      },
      // Include a generated id: after a failed submission the caller retries with it as its own.
      {
        id: id ?? storedId(principal, chosen ?? nanoid()),
        isNewId: id === undefined && chosen === undefined,
      },
    );
    refuseBeyondKey(principal, checked.job.settings);
    return checked.withKeySettings(principal.settings);
  } catch (error) {
    if (!isFault(error, "invalid-job")) throw error;
    const { problems } = error.context;
    throw new Problem("invalid-request", `the job is invalid: ${problems[0]}`, { problems });
  }
}

/** All tenants share this sandbox: a tenant's key must neither read nor write it. */
export function refuseShared(scope: string | undefined, principal: Principal): void {
  if (scope === "shared" && principal.role !== "admin") {
    throw new Problem(
      "forbidden",
      "the shared sandbox is shared by all tenants: only an admin key may use it",
    );
  }
}

function traceOf({ traceparent, tracestate }: SubmissionHeaders): Pick<Job, "trace"> {
  if (traceparent === undefined) return {};
  return { trace: { traceparent, ...(tracestate === undefined ? {} : { tracestate }) } };
}

/**
 * Derives a job id from an Idempotency-Key; only the same key of the same owner gives the same id. Refuses the key with a
 * different request, since that caller would get the other request's answer.
 */
export async function idempotentId(
  redis: Redis,
  key: string,
  owner: { readonly principal: Principal; readonly tenant: TenantId | undefined },
  request: unknown,
): Promise<string> {
  const id = ownerHash(owner.principal, key, owner.tenant);
  const print = digest(JSON.stringify(request));
  const first = await firstFingerprint(redis, id, print, idempotencyKeptSeconds);
  if (first !== print) {
    throw new Problem("idempotency-key-reused", "this Idempotency-Key came with another request before");
  }
  return id;
}

/** An id that only this owner's key produces. Admins use the empty name, which no tenant has. */
export function ownerHash(principal: Principal, key: string, tenant?: TenantId): string {
  return digest(`${tenant ?? principal.tenant ?? ""}\0${key}`);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
