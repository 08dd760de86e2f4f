import type { FleetPort, FollowedEvent } from "@berth/mcp";
import { sandboxKeyOf } from "@berth/protocol";
import { failureOf } from "./http/failure.ts";
import { Problem } from "./http/problem.ts";
import type { KnownJob } from "./jobs/job-desk.ts";
import { draftOf, type SubmissionHeaders } from "./jobs/submission.ts";
import { redactedEvent, type ShownEvent } from "./jobs/told-to.ts";
import { shownId } from "./keys/own-ids.ts";
import type { Principal } from "./keys/principal.ts";
import type { Parts } from "./parts.ts";

type Used = Pick<Parts, "submitter" | "jobs" | "reader" | "berth" | "artifacts">;

export interface Caller {
  readonly principal: Principal;
  /** Whose artifacts can be read; an admin key, too, is confined to the tenant that it named. */
  readonly tenant: string;
  readonly headers: SubmissionHeaders;
  readonly onBug: (error: unknown) => void;
}

/** The sandbox that is asked for is looked for among so many that the tenant used last: a call must not cost more than its rate. */
const lookedThrough = 20;

/** The fleet as MCP's tools need it, for one caller of this gateway: what its key may do, and no more. */
export function mcpPort(parts: Used, { principal, tenant, headers, onBug }: Caller): FleetPort {
  const followed = (job: Pick<KnownJob, "key" | "id">) => ({
    id: shownId(principal, job.id),
    events: (after: string, signal: AbortSignal) => shownEvents(parts, principal, job, after, signal),
    status: async () => {
      const { state } = await parts.jobs.view(await parts.jobs.find(job.id, principal), principal);
      if (state === "finished") return "finished" as const;
      return state === "running" ? ("started" as const) : ("not-started" as const);
    },
    cancel: async () => {
      await parts.berth.cancel(job.id);
    },
  });
  return {
    submit: async (order) => {
      const draft = draftOf({ ...order, tenant: order.tenant }, principal, { headers });
      await parts.submitter.submit(draft, { alone: true });
      return followed({ key: sandboxKeyOf(draft.job), id: draft.job.id });
    },
    find: async (id) => {
      const job = await parts.jobs.find(id, principal).catch(undefinedWhenMissing);
      return job && { ...followed(job), sandbox: job.key };
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
    explain: (error) => {
      const { code, detail, problems = [], ours } = failureOf(error, principal);
      if (ours) onBug(error);
      return { code, message: detail, advice: problems };
    },
  };
}

async function* shownEvents(
  { reader }: Used,
  { role }: Principal,
  { key, id }: Pick<KnownJob, "key" | "id">,
  after: string,
  signal: AbortSignal,
): AsyncGenerator<FollowedEvent> {
  for await (const event of reader.follow(key, id, after, signal)) {
    const shown: ShownEvent = role === "admin" ? event : redactedEvent(event);
    yield shown as FollowedEvent;
  }
}

function undefinedWhenMissing(error: unknown): undefined {
  if (error instanceof Problem && error.code === "not-found") return;
  throw error;
}
