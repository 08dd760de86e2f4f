import { type JobAddress, shownState, whenNoSandbox } from "@berth/client";
import type { FleetPort, FollowedEvent } from "@berth/mcp";
import { sandboxKeyOf } from "@berth/protocol";
import { failureOf } from "./http/failure.ts";
import { Problem } from "./http/problem.ts";
import { findJob } from "./jobs/own-jobs.ts";
import { redactedEvent, type ShownEvent, whyFor } from "./jobs/redaction.ts";
import { draftOf, type SubmissionHeaders } from "./jobs/submission.ts";
import { submitTraced } from "./jobs/submit-traced.ts";
import { shownId, storedId } from "./keys/own-ids.ts";
import type { Principal } from "./keys/principal.ts";
import type { Parts } from "./parts.ts";

type Used = Pick<Parts, "berth" | "config" | "artifacts" | "tracing">;

export interface Caller {
  readonly principal: Principal;
  /** The tenant whose artifacts can be read. An admin key, too, is confined to the tenant it named. */
  readonly tenant: string;
  readonly headers: SubmissionHeaders;
  readonly onBug: (error: unknown) => void;
}

/** Searches at most this many of the tenant's most recently used sandboxes, to bound a call's cost. */
const lookedThrough = 20;

/** The fleet as the MCP tools use it, limited to what the caller's key may do. */
export function mcpPort(parts: Used, { principal, tenant, headers, onBug }: Caller): FleetPort {
  const refuses = parts.config.onNoSandbox === "refuse";
  const followed = (job: JobAddress) => ({
    id: shownId(principal, job.id),
    events: (after: string, signal: AbortSignal) => shownEvents(parts, principal, job, after, signal),
    status: async () => {
      const known = await parts.berth.jobs.find(job.id);
      return known ? shownState(known.state) : ("finished" as const);
    },
    cancel: async () => {
      await parts.berth.cancel(job.id);
    },
  });
  return {
    submit: async (order) => {
      const draft = await parts.berth.placed(
        draftOf({ ...order, tenant: order.tenant }, principal, { headers }),
      );
      const { id } = await submitTraced(parts, draft, { detached: true });
      return followed({ sandbox: sandboxKeyOf(draft.job), id });
    },
    find: async (id) => {
      const job = await findJob(parts.berth, id, principal).catch(undefinedWhenMissing);
      return job && { ...followed(job), sandbox: job.sandbox };
    },
    sandbox: async (_, key) => {
      const known = await parts.berth.sandboxes({ tenant, limit: lookedThrough });
      const found = known.find((one) => one.key === key);
      return found && { ...found, held: found.worker !== undefined };
    },
    artifact: async (id) => {
      const meta = await parts.artifacts.meta(id);
      if (meta?.tenant !== tenant) return undefined;
      const bytes = await parts.artifacts.stream(id);
      return bytes && { bytes, mime: meta.mime };
    },
    ...(refuses
      ? {
          noSandbox: async (id, signal) => {
            const no = await whenNoSandbox({ why: () => parts.berth.why(storedId(principal, id)), signal });
            if (!no) return undefined;
            const message = whyFor(principal, no.why).reasons[no.index] ?? "";
            return { code: "no-sandbox", message, advice: ["the call was not carried out; try again later"] };
          },
        }
      : {}),
    explain: (error) => {
      const { code, detail, problems = [], ours } = failureOf(error, principal);
      if (ours) onBug(error);
      return { code, message: detail, advice: problems };
    },
  };
}

async function* shownEvents(
  { berth }: Used,
  { role }: Principal,
  address: JobAddress,
  after: string,
  signal: AbortSignal,
): AsyncGenerator<FollowedEvent> {
  for await (const event of berth.jobs.events(address, after, signal)) {
    const shown: ShownEvent = role === "admin" ? event : redactedEvent(event);
    yield shown as FollowedEvent;
  }
}

function undefinedWhenMissing(error: unknown): undefined {
  if (error instanceof Problem && error.code === "not-found") return;
  throw error;
}
