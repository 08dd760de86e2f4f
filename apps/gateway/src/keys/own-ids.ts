import { ownedId } from "@berth/protocol";
import type { Principal } from "./principal.ts";

/**
 * A tenant's own job and schedule ids are stored as `<tenant>.<id>` and shown without the prefix. Two tenants may use the same
 * id, and neither can take, suppress or probe the other's. An admin key uses the stored ids.
 */
export function storedId({ tenant }: Principal, chosen: string): string {
  return tenant === undefined ? chosen : ownedId(tenant, chosen);
}

/** The stored ids that the caller's id may mean: first one that the key submitted, then one of its tenant that an admin key or a Redis client submitted. */
export function storedIds(principal: Principal, named: string): readonly string[] {
  return [...new Set([storedId(principal, named), named])];
}

export function shownId({ tenant }: Principal, stored: string): string {
  const own = tenant === undefined ? "" : ownedId(tenant, "");
  return stored.startsWith(own) ? stored.slice(own.length) : stored;
}
