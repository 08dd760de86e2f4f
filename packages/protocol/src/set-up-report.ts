import { z } from "zod";

/** How the set-up command of a sandbox's latest container ended. */
export const setUpReport = z.strictObject({
  ok: z.boolean(),
  /** As people read it: `exited 0`. */
  how: z.string(),
  /** The end of its output. */
  output: z.string(),
  endedAtMs: z.number(),
  wallMs: z.number(),
});
export type SetUpReport = z.infer<typeof setUpReport>;

/** Bytes kept of its output. */
export const setUpOutputBytes = 4_096;
