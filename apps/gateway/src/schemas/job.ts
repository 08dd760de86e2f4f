import { whyCodes } from "@berth/client";
import {
  chosenJobId,
  dueTime,
  job,
  jobRequest,
  jobValue,
  outcome,
  jobResult as resultSchema,
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

output("JobValue", jobValue);
export const jobResult = output("JobResult", resultSchema);

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
    tenant: z.string().optional(),
    sandbox: z.string().optional(),
    position: z.number().optional().describe("jobs of the sandbox that are before it"),
    heldBy: z.string().optional().describe("the worker; for admin keys"),
    pool: z.string().optional().describe("whose workers may take its sandbox"),
    home: z.string().optional().describe("the host that has the sandbox's files; for admin keys"),
    dueAtMs: z.number().optional(),
    runningMs: z.number().optional().describe("for how long it has run"),
    behind: z
      .object({
        jobId: z.string(),
        tenant: z.string(),
        session: z.string(),
        runningMs: z.number().optional(),
      })
      .optional()
      .describe("the running job of its session, behind which it waits"),
    outcome: outcome.optional().describe("of a job that has ended"),
    exitCode: z.number().optional().describe("as a shell has it, of a job that has ended"),
  }),
);
