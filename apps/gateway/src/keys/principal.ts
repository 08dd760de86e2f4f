import {
  agentName,
  type Ceilings,
  Fault,
  type ProfileLayer,
  type TenantId,
  tenantId,
  tightenBy,
} from "@berth/protocol";
import { Problem } from "../http/problem.ts";

/** The caller, and what it may use. */
export interface Principal {
  /** The key's id; `admin` for the configured key, `local` without keys, `anybody` for open routes. */
  readonly id: string;
  readonly role: "admin" | "tenant" | "none";
  /** Set exactly for role `tenant`. */
  readonly tenant?: TenantId;
  /** Profiles and pools that jobs may name; absent: all. */
  readonly grants?: { readonly profiles: readonly string[]; readonly pools: readonly string[] };
  /** The agent of every job of this key, by name or id; absent: jobs may name any. */
  readonly agent?: string;
  /** Settings that bound every job of the key. */
  readonly settings?: ProfileLayer;
  /** What this gateway holds the tenant to; absent: no tenant's. */
  readonly ceilings?: Pick<Ceilings, "streams" | "waits" | "bodyBytes">;
  /** `admin`: this gateway lets only admin keys list and destroy sessions. */
  readonly sessionsAccess?: "own" | "admin";
  readonly bodyBytes: number;
  /** Requests per second; absent: no limit. */
  readonly rate?: number;
}

/** Whether the caller may see and change what belongs to this tenant. */
export function mayTouch(principal: Principal, tenant: string): boolean {
  return principal.role === "admin" || (principal.role === "tenant" && principal.tenant === tenant);
}

/** The tenant of a request: the named one, or the key's own. Refuses another tenant. */
export function tenantFor(
  principal: Principal,
  named: string | undefined,
  fallback?: TenantId,
  field = "tenant",
): TenantId {
  const tenant = (named === undefined ? undefined : tenantId.parse(named)) ?? principal.tenant ?? fallback;
  if (tenant === undefined) {
    throw new Problem("invalid-request", "the tenant is missing", { problems: [`${field}: name one`] });
  }
  if (!mayTouch(principal, tenant)) {
    throw new Problem("forbidden", "this key belongs to another tenant");
  }
  return tenant;
}

/** The agent of a request: the named one, or the key's own. Refuses another agent, whose layer may be less strict. */
export function agentFor({ agent: own }: Principal, named: string | undefined): string | undefined {
  if (own === undefined) return named;
  if (named !== undefined && agentName.parse(named) !== agentName.parse(own))
    throw new Problem("forbidden", "this key belongs to another agent");
  return own;
}

/** With BERTH_GATEWAY_SESSIONS=admin no route lets a tenant key list or destroy sessions. */
export function refuseSessions({ sessionsAccess }: Principal, what: "list" | "destroy"): void {
  if (sessionsAccess !== "admin") return;
  throw new Problem(
    "forbidden",
    `only an admin key may ${what} sessions: BERTH_GATEWAY_SESSIONS is admin here`,
  );
}

/** Every route that takes an order calls this: a job of kind `destroy` is the same as the call that destroys a session. */
export function refuseDestroy(principal: Principal, { kind }: { readonly kind: string }): void {
  if (kind === "destroy") refuseSessions(principal, "destroy");
}

/** Answers the same for an unknown profile or pool as for one not granted, so that names cannot be guessed. */
export function refuseUngranted(
  { grants, tenant = "" as TenantId }: Principal,
  { profile, pool }: { readonly profile?: string | undefined; readonly pool?: string | undefined },
): void {
  if (!grants) return;
  const refuse = (what: "profile" | "pool", name: string) => {
    throw new Problem("forbidden", new Fault("not-granted", { what, name, tenant }).message);
  };
  if (profile !== undefined && !grants.profiles.includes(profile)) refuse("profile", profile);
  if (pool !== undefined && !grants.pools.includes(pool)) refuse("pool", pool);
}

/** The worker holds the job to its key's settings too. Here a job that asks for more than they allow is refused at once. */
export function refuseBeyondKey(
  { settings: ofKey, tenant = "" as TenantId }: Principal,
  wanted: ProfileLayer | undefined,
): void {
  if (!ofKey || !wanted) return;
  const { excess } = tightenBy(ofKey, wanted);
  if (excess.length === 0) return;
  const problems = excess.map(({ path, problem }) => `${path}: ${problem}`);
  throw new Problem("forbidden", new Fault("not-allowed", { tenant, problems }).message);
}
