import { z } from "zod";

const namePattern = /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/;
const nameRule = "1 to 63 of a-z, 0-9, - and _, beginning and ending with a letter or digit";

/** A name as the edge checks it: each kind has a sentence of its own. */
const named = (what: string) => z.string().regex(namePattern, { error: `${what} is ${nameRule}` });

/** The first name of the sandbox that all tenants share. A tenant of that name would own every job in it. */
export const sharedOwner = "shared";

/** Whom work belongs to. Checked once, at the edge; everything behind it trusts the brand. */
export const tenantId = named("a tenant id")
  .refine((name) => name !== sharedOwner, {
    error: `the tenant id ${sharedOwner} is reserved for the sandbox that all tenants share`,
  })
  .brand<"TenantId">();
export type TenantId = z.infer<typeof tenantId>;

export const sessionName = named("a session name").brand<"SessionName">();
export type SessionName = z.infer<typeof sessionName>;

export const agentName = named("an agent name").brand<"AgentName">();
export type AgentName = z.infer<typeof agentName>;

export const poolName = named("a pool name").brand<"PoolName">();
export type PoolName = z.infer<typeof poolName>;

export const profileName = named("a profile name").brand<"ProfileName">();
export type ProfileName = z.infer<typeof profileName>;

/** Whose disk has the workspaces. */
export const hostName = named("a host name").brand<"HostName">();

export const workerId = named("a worker id").brand<"WorkerId">();
export type WorkerId = z.infer<typeof workerId>;

export const fleetId = named("a fleet id").brand<"FleetId">();
export type FleetId = z.infer<typeof fleetId>;

/** A schedule's id: as it was chosen, or behind the name of the tenant whose key made it (`ownedId`). */
export const scheduleId = z
  .string()
  .regex(/^(?:[a-z0-9][a-z0-9_-]{0,62}\.)?[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/, {
    error: `a schedule id is ${nameRule}`,
  });

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

/** Whose sandbox it is: the key's first name. Of the sandbox that all tenants share: `sharedOwner`, which is no tenant's id. */
export function tenantOf(key: SandboxKey): TenantId {
  return key.split(".", 1)[0] as TenantId;
}

/** Grows with every change of holder and never goes back. */
export const epoch = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER).brand<"Epoch">();
export type Epoch = z.infer<typeof epoch>;
