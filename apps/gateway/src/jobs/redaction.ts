import { type IdentifiedEvent, type Why, whyForTenant } from "@berth/client";
import {
  type ArtifactRefusal,
  type FaultCode,
  faultTable,
  hostFaults,
  type JobResult,
  type Outcome,
  withText,
} from "@berth/protocol";
import { shownId } from "../keys/own-ids.ts";
import type { Principal } from "../keys/principal.ts";

/** Faults whose messages name paths, addresses, images or programs of the fleet's machines. */
const ofTheMachines: ReadonlySet<string> = new Set<FaultCode>([
  ...hostFaults,
  "artifact-store-failed",
  "redis-unreachable",
  "redis-refused",
  "redis-full",
]);

/** The fault's generic meaning, without names; undefined when the message itself may be shown. */
export function meaningForTenants(code: string): string | undefined {
  return ofTheMachines.has(code) ? faultTable[code as FaultCode].meaning : undefined;
}

/** The part of an outcome that the caller may see. Of the fleet's own faults tenants see only the code. */
export function resultFor({ role }: Pick<Principal, "role">, result: JobResult): JobResult {
  return role === "admin" ? result : redactedResult(result);
}

export function whyFor(principal: Principal, why: Why): Why {
  if (principal.role === "admin") return why;
  const { outcome } = why;
  const shown = outcome === undefined ? why : { ...why, outcome: redactedOutcome(outcome) };
  return whyForTenant(shown, (jobId) => shownId(principal, jobId));
}

type Started = Extract<IdentifiedEvent, { type: "started" }>;
export type ShownEvent = Exclude<IdentifiedEvent, Started> | Omit<Started, "worker">;

/** An event as tenants see it. */
export function redactedEvent(event: IdentifiedEvent): ShownEvent {
  switch (event.type) {
    case "started": {
      const { worker: _, ...rest } = event;
      return rest;
    }
    case "retrying":
      return { ...event, outcome: redactedOutcome(event.outcome) };
    case "finished":
      return { ...event, result: redactedResult(event.result) };
    default:
      return event;
  }
}

function redactedResult({ value, timing, usage, labels, ...result }: JobResult): JobResult {
  const { steps, artifactsRefused } = value;
  const outcome = redactedOutcome(result.outcome);
  const redacted = {
    outcome,
    value: {
      ...value,
      ...(steps ? { steps: steps.map(redactedResult) } : {}),
      ...(artifactsRefused ? { artifactsRefused: artifactsRefused.map(redactedRefusal) } : {}),
    },
    timing,
    ...(usage ? { usage } : {}),
    ...(labels ? { labels } : {}),
  };
  // The text repeats the outcome's message. A refused job has no other output.
  if (outcome.kind === "refused") return steps ? redacted : withText(redacted);
  return result.text === undefined ? redacted : { ...redacted, text: result.text };
}

/** The message of `not-kept` may contain a path of the host, which begins with a slash. */
function redactedRefusal(refusal: ArtifactRefusal): ArtifactRefusal {
  if (refusal.code !== "not-kept" || !/(^|[\s('"])\//.test(refusal.reason)) return refusal;
  return { ...refusal, reason: faultTable["artifact-store-failed"].meaning };
}

function redactedOutcome(outcome: Outcome): Outcome {
  if (outcome.kind !== "refused") return outcome;
  return { ...outcome, message: meaningForTenants(outcome.code) ?? outcome.message };
}
