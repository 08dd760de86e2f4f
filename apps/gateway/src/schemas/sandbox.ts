import { setUpReport } from "@berth/protocol";
import { z } from "zod";
import { namesView } from "./job.ts";
import { output } from "./registry.ts";

export const sandboxView = output(
  "Sandbox",
  z.object({
    key: z.string().describe("made of tenant, session and agent, by the scope"),
    tenant: z.string(),
    names: namesView,
    worker: z.string().optional().describe("the worker that holds it now; for admin keys"),
    epoch: z.number(),
    home: z
      .string()
      .optional()
      .describe("the host its workspace is on, unless storage is shared; for admin keys"),
    pool: z.string(),
    unfinished: z.number().describe("jobs that wait or run"),
    paused: z.boolean(),
    lastUsedMs: z.number(),
    setUp: setUpReport
      .optional()
      .describe("how the profile's set-up command ended in its last container; absent without one"),
  }),
);
