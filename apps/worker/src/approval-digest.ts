import { createHash } from "node:crypto";
import type { Job } from "@berth/protocol";

/** 96 bits: too many to search for a second job of the same digest. */
const length = 16;

/**
 * A digest of every field of a job that decides what runs, and of none that changes between attempts. So an approval holds neither for
 * a later job of the same id nor after one of the job's custom tools was changed.
 */
export function approvalDigest(
  { tenant, session, agent, scope, request, profile, settings, forkOf, discard, secrets }: Job,
  toolsDigest: string,
): string {
  const all = { tenant, session, agent, scope, request, profile, settings, forkOf, discard, secrets };
  return createHash("sha256")
    .update(JSON.stringify([sorted(all), toolsDigest]))
    .digest("base64url")
    .slice(0, length);
}

/** Puts fields in one order: a later attempt's JSON may have them in another. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, one]) => [name, sorted(one)]));
}
