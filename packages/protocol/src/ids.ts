import { z } from "zod";
import { canonicalName, isMappedName, nameProblem } from "./names.ts";

const namePattern = /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/;
const nameRule = "1 to 63 of a-z, 0-9, - and _, beginning and ending with a letter or digit";

/** A name as the edge checks it: each kind has a sentence of its own. */
export const named = (what: string) => z.string().regex(namePattern, { error: `${what} is ${nameRule}` });

/** The first name of the sandbox that all tenants share. A tenant of that name would own every job in it. */
export const sharedOwner = "shared";

const sharedIsReserved = `the tenant id ${sharedOwner} is reserved for the sandbox that all tenants share`;

function problemOf(what: string, given: string): string | undefined {
  const problem = nameProblem(given);
  if (problem !== undefined) return `${what} ${problem}`;
  return what === "a tenant's name" && given === sharedOwner ? sharedIsReserved : undefined;
}

/** A name as users have it; what comes out is its id. */
const mapped = (what: string) =>
  z.string().transform((given, context) => {
    const problem = problemOf(what, given);
    if (problem === undefined) return canonicalName(given);
    context.addIssue({ code: "custom", message: problem });
    return z.NEVER;
  });

/** The same, left as it was given. */
const given = (what: string) =>
  z.string().superRefine((name, context) => {
    const problem = problemOf(what, name);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  });

/** Whom work belongs to. Mapped once, at the edge; everything behind it trusts the brand. */
export const tenantId = mapped("a tenant's name").brand<"TenantId">();
export type TenantId = z.infer<typeof tenantId>;
export const givenTenant = given("a tenant's name");

export const sessionName = mapped("a session's name").brand<"SessionName">();
export type SessionName = z.infer<typeof sessionName>;
export const givenSession = given("a session's name");

export const agentName = mapped("an agent's name").brand<"AgentName">();
export type AgentName = z.infer<typeof agentName>;
export const givenAgent = given("an agent's name");

/** A tenant's id where nothing is mapped: in the names of directories. */
export const canonicalTenant = named("a tenant id").refine((name) => name !== sharedOwner, {
  error: sharedIsReserved,
});

/** Whether a tenant's id can only be that of a tenant which is known by its given name: no caller can choose it. */
export function isMappedTenant(tenant: TenantId): boolean {
  return isMappedName(tenant);
}

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

/** The agent whose sandbox it is, if its jobs have one for each agent. */
export function agentIn(key: SandboxKey): AgentName | undefined {
  const [, kind, name] = key.split(".", 3);
  return kind === "a" ? (name as AgentName) : undefined;
}

/** Grows with every change of holder and never goes back. */
export const epoch = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER).brand<"Epoch">();
export type Epoch = z.infer<typeof epoch>;
