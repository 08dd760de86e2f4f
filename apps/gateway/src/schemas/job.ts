import { whyCodes } from "@berth/client";
import {
  chosenJobId,
  dueTime,
  givenNames,
  job,
  jobRequest,
  jobSecrets,
  jobValue,
  outcome,
  jobResult as resultSchema,
  scope,
  tenantId,
  withGivenNames,
} from "@berth/protocol";
import { z } from "zod";
import { input, output } from "./registry.ts";

input("JobRequest", jobRequest);
output("Outcome", outcome);

/** The job fields that a caller may set. The fleet sets the rest; above all, no caller may choose the inbox of the result. */
const orderFields = job
  .omit({
    ...{ version: true, id: true, tenant: true, inbox: true, attempt: true, trace: true, secrets: true },
    keySettings: true,
  })
  .extend({
    secrets: jobSecrets.optional(),
    id: chosenJobId
      .optional()
      .describe(
        "idempotency key: the same id is run once; for a day a second submission gets the first one's result. With a tenant key, ids are the tenant's own",
      ),
    session: job.shape.session
      .unwrap()
      .optional()
      .describe(
        "its jobs run in order, one at a time; absent: `main`, or with `forkOf` one of the job's own",
      ),
    scope: scope.optional().describe("which jobs share its sandbox; when absent, as the tenant's layers set"),
    tenant: tenantId.optional().describe("with a tenant key: its own, and may be left out"),
    ...dueTime.shape,
  });
export const order = input("JobOrder", z.preprocess(withGivenNames, orderFields));

/** What a schedule submits on each run. */
export const scheduledOrder = z.preprocess(
  withGivenNames,
  orderFields.omit({ id: true, delayMs: true, runAtMs: true, deadlineAtMs: true }),
);
export type Order = z.infer<typeof order>;
export type OrderInput = z.input<typeof orderFields>;

export const maxOrders = 1_000;
export const orders = z.union([order, z.array(order).min(1).max(maxOrders)]);

/** Fields shown next to ids. */
export const namesView = givenNames
  .optional()
  .describe("tenant, session and agent as they were given, where the ids are others");

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
    names: namesView,
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
    reasons: z.array(z.string()).describe("for a tenant key without workers, hosts and their errors"),
    codes: z.array(z.enum(whyCodes)).describe("the same reasons, for programs"),
    tenant: z.string().optional(),
    sandbox: z.string().optional(),
    names: namesView,
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
