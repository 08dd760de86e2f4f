import { z } from "zod";
import { output } from "./registry.ts";

export const problem = output(
  "Problem",
  z.object({
    type: z.string(),
    title: z.string(),
    status: z.number(),
    code: z.string().describe("a code of this API, a fault's, or a refusal's"),
    detail: z.string(),
    problems: z.array(z.string()).optional().describe("every reason why the request is invalid"),
    requestId: z.string().optional(),
    jobId: z
      .string()
      .optional()
      .describe("the job whose submission failed; submitting it again with this id runs it once"),
    accepted: z
      .enum(["no", "unknown"])
      .optional()
      .describe("no: the fleet does not have that job; unknown: it may have it, and may run it"),
  }),
);
