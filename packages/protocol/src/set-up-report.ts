import { z } from "zod";

/** How the set-up command of a sandbox's container ended last. */
export const setUpReport = z.strictObject({
  ok: z.boolean(),
  /** As people read it: `exited 0`. */
  how: z.string(),
  /** The last of its output. */
  output: z.string(),
  endedAtMs: z.number(),
  wallMs: z.number(),
});
export type SetUpReport = z.infer<typeof setUpReport>;

/** Of its output, so many bytes are kept. */
export const setUpOutputBytes = 4_096;
