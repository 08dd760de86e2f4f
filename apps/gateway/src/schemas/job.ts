import { whyCodes } from "@berth/client";
import {
  artifactRef,
  artifactRefusal,
  chosenJobId,
  dueTime,
  job,
  jobRequest,
  outcome,
  tenantId,
} from "@berth/protocol";
import { z } from "zod";
import { input, output } from "./registry.ts";

input("JobRequest", jobRequest);
output("Outcome", outcome);

/** What a caller says of a job. The fleet sets the rest; whose inbox is told, above all, is nobody's to choose here. */
export const order = input(
  "JobOrder",
  job.omit({ version: true, id: true, tenant: true, inbox: true, attempt: true, trace: true }).extend({
    id: chosenJobId
      .optional()
      .describe(
        "the same id is run once; for a day a second order gets the first one's result. With a tenant key, ids are the tenant's own",
      ),
    tenant: tenantId.optional().describe("with a tenant key: its own, and may be left out"),
    ...dueTime.shape,
  }),
);
export type Order = z.infer<typeof order>;
export type OrderInput = z.input<typeof order>;

export const maxOrders = 1_000;
export const orders = z.union([order, z.array(order).min(1).max(maxOrders)]);

const fileEntry = z.object({
  path: z.string(),
  type: z.enum(["file", "directory", "symlink", "other"]),
  size: z.number(),
  mode: z.number(),
  modifiedMs: z.number(),
  target: z.string().optional(),
});
const grepMatch = z.object({ path: z.string(), line: z.number(), text: z.string(), cut: z.boolean() });

const value = z
  .looseObject({
    stdout: z.string().optional(),
    stderr: z.string().optional(),
    cutBytes: z.number().optional().describe("output that was not kept"),
    content: z.string().optional(),
    encoding: z.enum(["utf8", "base64"]).optional(),
    sha256: z.string().optional(),
    size: z.number().optional(),
    created: z.boolean().optional(),
    count: z.number().optional(),
    lines: z.object({ first: z.number(), last: z.number(), more: z.boolean() }).optional(),
    entries: z.array(fileEntry).optional(),
    matches: z.array(grepMatch).optional(),
    truncated: z.boolean().optional(),
    artifacts: z.array(artifactRef).optional(),
    artifactsRefused: z.array(artifactRefusal).optional(),
  })
  .describe("what the job left, by its kind");

export const jobResult = output(
  "JobResult",
  z.object({ outcome, value, timing: z.looseObject({ wallMs: z.number(), cpuMs: z.number() }) }),
);

export const jobView = output(
  "Job",
  z.object({
    id: z.string(),
    tenant: z.string(),
    session: z.string(),
    kind: z.string(),
    sandbox: z.string(),
    state: z.enum(["scheduled", "waiting", "running", "finished"]),
    acceptedAtMs: z.number(),
    result: jobResult.optional(),
  }),
);
export type JobView = z.infer<typeof jobView>;

export const whyView = output(
  "Why",
  z.object({
    jobId: z.string(),
    state: z.enum(["unknown", "scheduled", "waiting", "running", "finished"]),
    reasons: z.array(z.string()).describe("a tenant key is not told of workers, hosts and their troubles"),
    codes: z.array(z.enum(whyCodes)).describe("the same reasons, for programs"),
    sandbox: z.string().optional(),
    position: z.number().optional().describe("jobs of the sandbox that are before it"),
    heldBy: z.string().optional().describe("the worker; for admin keys"),
    dueAtMs: z.number().optional(),
  }),
);
