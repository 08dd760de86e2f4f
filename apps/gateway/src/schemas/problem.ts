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
    problems: z.array(z.string()).optional().describe("each thing that does not fit"),
    requestId: z.string().optional(),
  }),
);
