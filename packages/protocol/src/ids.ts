import { z } from "zod";

const namePattern = /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/;
const nameRule = "1 to 63 of a-z, 0-9, - and _, beginning and ending with a letter or digit";

/** Whom work belongs to. Checked once, at the edge; everything behind it trusts the brand. */
export const tenantId = z
  .string()
  .regex(namePattern, { error: `a tenant id is ${nameRule}` })
  .brand<"TenantId">();
export type TenantId = z.infer<typeof tenantId>;

export const workerId = z
  .string()
  .regex(namePattern, { error: `a worker id is ${nameRule}` })
  .brand<"WorkerId">();
export type WorkerId = z.infer<typeof workerId>;

export const fleetId = z
  .string()
  .regex(namePattern, { error: `a fleet id is ${nameRule}` })
  .brand<"FleetId">();
export type FleetId = z.infer<typeof fleetId>;

/**
 * What the scope makes of a job's tenant, session and agent: up to three names joined by dots. It is part of container
 * and directory names, so the alphabet is the one all of them accept.
 */
export const sandboxKey = z
  .string()
  .max(191)
  .regex(/^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?){0,2}$/, {
    error: `a sandbox key is one to three names joined by dots, each ${nameRule}`,
  })
  .brand<"SandboxKey">();
export type SandboxKey = z.infer<typeof sandboxKey>;

/** Whose sandbox it is: the key's first name. */
export function tenantOf(key: SandboxKey): TenantId {
  return key.split(".", 1)[0] as TenantId;
}

/** Grows with every change of holder and never goes back. */
export const epoch = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER).brand<"Epoch">();
export type Epoch = z.infer<typeof epoch>;
