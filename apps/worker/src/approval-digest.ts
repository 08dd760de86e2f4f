import { createHash } from "node:crypto";
import type { Job } from "@berth/protocol";

/** 96 bits: too many to search for a second job of the same digest. */
const length = 16;

/**
 * Of all of a job that decides what runs. Neither a later job of the same id nor the same job after one of its custom tools was changed
 * has the same. What changes from one attempt to the next is left out.
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

/** The order of fields is none of a job's content: a later attempt may have them in another. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, one]) => [name, sorted(one)]));
}
