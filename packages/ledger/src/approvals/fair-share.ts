import type { Approval } from "./approvals.ts";

/** Picks `limit` approvals, tenants in turn. The first to expire comes first. */
export function fairShare(all: readonly Approval[], limit: number): Approval[] {
  const sorted = all.toSorted(byExpiry);
  if (sorted.length <= limit) return sorted;
  const seen = new Map<string, number>();
  const ranked = sorted.map((approval) => {
    const rank = seen.get(approval.tenant) ?? 0;
    seen.set(approval.tenant, rank + 1);
    return { approval, rank };
  });
  const chosen = ranked.toSorted((a, b) => a.rank - b.rank).slice(0, limit);
  return chosen.map(({ approval }) => approval).sort(byExpiry);
}

function byExpiry(a: Approval, b: Approval): number {
  return a.expiresAtMs - b.expiresAtMs;
}
