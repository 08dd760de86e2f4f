import { z } from "zod";
import { artifactRef, artifactRefusal } from "./artifact.ts";
import { fileEntry, grepMatch } from "./files.ts";
import { outcome } from "./outcome.ts";

const count = z.number().int().min(0);

export const jobTiming = z.strictObject({
  wallMs: z.number().min(0),
  cpuMs: z.number().min(0),
});

/** What a job leaves besides its outcome, by its kind. The one description of it: for types, for answers and for OpenAPI. */
export const jobValue = z
  .strictObject({
    stdout: z.string().exactOptional(),
    stderr: z.string().exactOptional(),
    cutBytes: count.exactOptional().describe("output bytes that were not kept"),
    content: z.string().exactOptional(),
    encoding: z.enum(["utf8", "base64"]).exactOptional(),
    sha256: z.string().exactOptional(),
    size: count.exactOptional(),
    created: z.boolean().exactOptional(),
    count: count.exactOptional(),
    lines: z.strictObject({ first: count, last: count, more: z.boolean() }).exactOptional(),
    entries: z.array(fileEntry).readonly().exactOptional(),
    matches: z.array(grepMatch).readonly().exactOptional(),
    truncated: z.boolean().exactOptional(),
    artifacts: z
      .array(artifactRef)
      .readonly()
      .exactOptional()
      .describe("what was kept of the files the job left"),
    artifactsRefused: z
      .array(artifactRefusal)
      .readonly()
      .exactOptional()
      .describe("files that were not kept; at most the first twenty of artifactsRefusedCount"),
    artifactsRefusedCount: count.exactOptional(),
    persisted: z
      .array(artifactRef)
      .readonly()
      .exactOptional()
      .describe(
        "of list and remove: what the conversation had persisted there; of read: that it was read instead of the workspace's file",
      ),
    get steps() {
      return z.array(jobResult).readonly().exactOptional().describe("of steps: the result of each that ran");
    },
  })
  .describe("what the job left, by its kind");

export const jobResult: z.ZodType<JobResult> = z.strictObject({
  outcome,
  value: jobValue,
  timing: jobTiming,
  text: z
    .string()
    .exactOptional()
    .describe(
      "what an agent reads: the output of a command, both streams as they were written, and how it ended; of other kinds, why it was not done",
    ),
});

export type JobValue = Readonly<z.infer<typeof jobValue>>;

export interface JobResult {
  readonly outcome: z.infer<typeof outcome>;
  readonly value: JobValue;
  readonly timing: z.infer<typeof jobTiming>;
  /** What an agent reads. Absent in Redis; readers add it. Absent from results that are `done`, and from those with steps. */
  readonly text?: string;
}
