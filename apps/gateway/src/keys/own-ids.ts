import { ownedId } from "@berth/protocol";
import type { Principal } from "./principal.ts";

/**
 * Ids that a tenant key chose for jobs and schedules are kept as `<tenant>.<id>`, and shown without the tenant. So two
 * tenants may use the same id, and neither can take, suppress or probe the other's. An admin key sees and names what is kept.
 */
export function storedId({ tenant }: Principal, chosen: string): string {
  return tenant === undefined ? chosen : ownedId(tenant, chosen);
}

/** Under which ids something may be kept that the caller calls so: its own first, then what others made for its tenant. */
export function storedIds(principal: Principal, named: string): readonly string[] {
  return [...new Set([storedId(principal, named), named])];
}

export function shownId({ tenant }: Principal, stored: string): string {
  const own = tenant === undefined ? "" : ownedId(tenant, "");
  return stored.startsWith(own) ? stored.slice(own.length) : stored;
}
