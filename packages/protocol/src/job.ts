import { z } from "zod";
import { givenNames } from "./given-names.ts";
import {
  type AgentName,
  agentName,
  poolName,
  profileName,
  type SandboxKey,
  type SessionName,
  sandboxKey,
  sessionName,
  sharedOwner,
  tenantId,
  tenantOf,
} from "./ids.ts";
import { jobId } from "./job-ids.ts";
import { jobRequest } from "./job-kinds.ts";
import { labels } from "./labels.ts";
import { outcome } from "./outcome.ts";
import { tighteningLayer } from "./profile-layer.ts";
import { builtInScope, scope } from "./scope.ts";
import { sealedSecrets } from "./secrets.ts";
import { snapshotName } from "./snapshot.ts";

const outcomeKinds = outcome.options.map((option) => option.shape.kind.value);

/** Retries after failures, with growing pauses. Only the last attempt's end is the job's. */
export const retry = z.strictObject({
  attempts: z.number().int().min(1).max(20).describe("runs in all"),
  backoffMs: z.number().int().min(0).max(3_600_000).default(1_000).describe("pause before the second run"),
  maxBackoffMs: z.number().int().min(0).max(86_400_000).default(60_000),
  factor: z.number().min(1).max(10).default(2).describe("each pause is this many times the one before"),
  jitter: z
    .number()
    .min(0)
    .max(1)
    .default(0.5)
    .describe("jitter: up to this share of a pause is left out, at random"),
  on: z
    .array(z.enum(outcomeKinds as [string, ...string[]]))
    .default(["exited", "signalled", "timed-out", "out-of-memory", "lost"])
    .describe("outcomes after which it is retried; exited: with a code other than 0"),
});
export type Retry = z.infer<typeof retry>;

/** One unit of work as it travels. Versioned: a worker refuses an unknown version instead of guessing. */
export const job = z.strictObject({
  version: z.literal(1),
  id: jobId,
  tenant: tenantId,
  session: z.string().pipe(sessionName).prefault("main"),
  agent: z.string().pipe(agentName).optional(),
  names: givenNames
    .optional()
    .describe("tenant, session and agent as they were given, where the ids are others; set by Berth"),
  scope: scope.default(builtInScope),
  request: jobRequest,
  profile: z
    .string()
    .pipe(profileName)
    .optional()
    .describe("one that the tenant was granted; default: default"),
  settings: tighteningLayer.optional(),
  keySettings: tighteningLayer
    .optional()
    .describe("the settings of the key that it came with, a layer of their own; set by the gateway"),
  pool: z
    .string()
    .pipe(poolName)
    .optional()
    .describe("workers that may run it; one that the tenant was granted; default: default"),
  forkOf: z
    .string()
    .pipe(snapshotName)
    .optional()
    .describe(
      "a snapshot of the tenant's: the job's sandbox starts with its files. Without `session` and `scope`, a sandbox of the job's own",
    ),
  discard: z
    .boolean()
    .optional()
    .describe(
      "with `forkOf`: the sandbox and its files go when the job has ended; true for a job that has a sandbox of its own",
    ),
  secrets: sealedSecrets.optional(),
  retry: retry.optional(),
  attempt: z.number().int().min(1).max(20).default(1).describe("which run this is; set by the fleet"),
  idempotent: z.boolean().default(false).describe("may run again if its worker dies during the run"),
  priority: z
    .number()
    .int()
    .min(0)
    .max(2_097_152)
    .default(0)
    .describe("0 is before all others; then 1, 2, …"),
  deadlineAtMs: z.number().int().optional().describe("epoch milliseconds; not begun after it"),
  inbox: z.string().max(128).optional().describe("the inbox stream that gets the result"),
  labels: labels.default({}).describe("names and values that come back with the result; 32 at most"),
  trace: z
    .strictObject({ traceparent: z.string().max(128), tracestate: z.string().max(1024).optional() })
    .optional(),
});
export type Job = z.infer<typeof job>;
export type JobInput = z.input<typeof job>;

/** Scope, tenant, session and agent of a sandbox's key; undefined for the sandbox that all tenants share. */
export function partsOfKey(
  key: SandboxKey,
):
  | (Pick<Job, "tenant" | "scope"> & { readonly session?: SessionName; readonly agent?: AgentName })
  | undefined {
  const tenant = tenantOf(key);
  const [, kind, name = ""] = key.split(".");
  if (kind === undefined) return { tenant, scope: "tenant" };
  if (kind === "s") return { tenant, scope: "session", session: name as SessionName };
  return kind === "a" ? { tenant, scope: "agent", agent: name as AgentName } : undefined;
}

/** The key of a job's sandbox. Jobs with the same key share container, workspace, queue and lease. */
export function sandboxKeyOf(of: Pick<Job, "tenant" | "session" | "agent" | "scope">): SandboxKey {
  switch (of.scope) {
    case "tenant":
      return sandboxKey.parse(of.tenant);
    case "session":
      return sandboxKey.parse(`${of.tenant}.s.${of.session}`);
    case "agent":
      return sandboxKey.parse(`${of.tenant}.a.${of.agent ?? "default"}`);
    case "shared":
      // Two names: no other scope makes exactly two here, so no tenant's key can be equal.
      return sandboxKey.parse(`${sharedOwner}.all`);
  }
}
