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

/** Who asks, and what they may use. */
export interface Principal {
  /** The key's id; `admin` for the configured key, `local` without keys, `anybody` for open routes. */
  readonly id: string;
  readonly role: "admin" | "tenant" | "none";
  /** Set exactly for role `tenant`. */
  readonly tenant?: TenantId;
  /** Profiles and pools that jobs may name; absent: all. */
  readonly grants?: { readonly profiles: readonly string[]; readonly pools: readonly string[] };
  /** Every job of the key is this agent's, by its name or its id; absent: as jobs say. */
  readonly agent?: string;
  /** What every job of the key is held to. */
  readonly settings?: ProfileLayer;
  /** What this gateway holds the tenant to; absent: no tenant's. */
  readonly ceilings?: Pick<Ceilings, "streams" | "waits" | "bodyBytes">;
  readonly bodyBytes: number;
  /** Requests a second; absent: no limit. */
  readonly rate?: number;
}

/** Whether whatever belongs to this tenant may be seen and touched. */
export function mayTouch(principal: Principal, tenant: string): boolean {
  return principal.role === "admin" || (principal.role === "tenant" && principal.tenant === tenant);
}

/** The tenant a request is for: as named, by its name or its id, or the key's own. Naming another's is refused. */
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

/** The agent that a request is for: as named, or the key's own. Another's layer might hold it back less, so naming that is refused. */
export function agentFor({ agent: own }: Principal, named: string | undefined): string | undefined {
  if (own === undefined) return named;
  if (named !== undefined && agentName.parse(named) !== agentName.parse(own))
    throw new Problem("forbidden", "this key belongs to another agent");
  return own;
}

/** A profile or pool that does not exist is answered as one that was not granted: names are not for guessing. */
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
