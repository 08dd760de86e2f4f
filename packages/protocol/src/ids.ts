import { z } from "zod";
import { canonicalName, isMappedName, nameProblem } from "./names.ts";

const namePattern = /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/;
const nameRule = "1 to 63 of a-z, 0-9, - and _, beginning and ending with a letter or digit";

/** Validates a name at the edge; each kind has its own error message. */
export const named = (what: string) => z.string().regex(namePattern, { error: `${what} is ${nameRule}` });

/** The first name in the key of the sandbox that all tenants share. Reserved: a tenant of that name would own every job in it. */
export const sharedOwner = "shared";

const sharedIsReserved = `the tenant id ${sharedOwner} is reserved for the sandbox that all tenants share`;

function problemOf(what: string, given: string): string | undefined {
  const problem = nameProblem(given);
  if (problem !== undefined) return `${what} ${problem}`;
  return what === "a tenant's name" && given === sharedOwner ? sharedIsReserved : undefined;
}

/** Maps a user's name to its id. */
const mapped = (what: string) =>
  z.string().transform((given, context) => {
    const problem = problemOf(what, given);
    if (problem === undefined) return canonicalName(given);
    context.addIssue({ code: "custom", message: problem });
    return z.NEVER;
  });

/** Validates the name and leaves it as given. */
const given = (what: string) =>
  z.string().superRefine((name, context) => {
    const problem = problemOf(what, name);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  });

/** The tenant that work belongs to. Mapped once at the edge; everything behind it trusts the brand. */
export const tenantId = mapped("a tenant's name").brand<"TenantId">();
export type TenantId = z.infer<typeof tenantId>;
export const givenTenant = given("a tenant's name");

export const sessionName = mapped("a session's name").brand<"SessionName">();
export type SessionName = z.infer<typeof sessionName>;
export const givenSession = given("a session's name");

export const agentName = mapped("an agent's name").brand<"AgentName">();
export type AgentName = z.infer<typeof agentName>;
export const givenAgent = given("an agent's name");

/** A tenant's id, not mapped: it comes from a directory's name. */
export const canonicalTenant = named("a tenant id").refine((name) => name !== sharedOwner, {
  error: sharedIsReserved,
});

/** Whether this id can only come from a given name: no caller can choose it. */
export function isMappedTenant(tenant: TenantId): boolean {
  return isMappedName(tenant);
}

export const poolName = named("a pool name").brand<"PoolName">();
export type PoolName = z.infer<typeof poolName>;

export const profileName = named("a profile name").brand<"ProfileName">();
export type ProfileName = z.infer<typeof profileName>;

/** The host whose disk has the workspaces. */
export const hostName = named("a host name").brand<"HostName">();

export const workerId = named("a worker id").brand<"WorkerId">();
export type WorkerId = z.infer<typeof workerId>;

export const fleetId = named("a fleet id").brand<"FleetId">();
export type FleetId = z.infer<typeof fleetId>;

/** A schedule's id: chosen by its caller, or with the prefix of the tenant whose key made it (`ownedId`). */
export const scheduleId = z
  .string()
  .regex(/^(?:[a-z0-9][a-z0-9_-]{0,62}\.)?[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/, {
    error: `a schedule id is ${nameRule}`,
  });

/**
 * A sandbox's key: up to three names joined by dots, derived by the scope from tenant, session and agent. Container and directory
 * names contain it, so its alphabet is one that both accept.
 */
export const sandboxKey = z
  .string()
  .max(191)
  .regex(/^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?){0,2}$/, {
    error: `a sandbox key is one to three names joined by dots, each ${nameRule}`,
  })
  .brand<"SandboxKey">();
export type SandboxKey = z.infer<typeof sandboxKey>;

/** The owner of the sandbox: the key's first name. For the sandbox that all tenants share: `sharedOwner`, which is no tenant's id. */
export function tenantOf(key: SandboxKey): TenantId {
  return key.split(".", 1)[0] as TenantId;
}

/** The agent of the sandbox, if the scope gives each agent its own. */
export function agentIn(key: SandboxKey): AgentName | undefined {
  const [, kind, name] = key.split(".", 3);
  return kind === "a" ? (name as AgentName) : undefined;
}

/** The fencing token: grows with every change of holder and never decreases. */
export const epoch = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER).brand<"Epoch">();
export type Epoch = z.infer<typeof epoch>;
