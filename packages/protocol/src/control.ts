import { z } from "zod";
import { sandboxKey, tenantId, workerId } from "./ids.ts";
import { layerId } from "./layer-id.ts";

/** The messages of the control channel. A worker that does not know a message ignores it. */
export const controlMessage = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("cancel"), key: sandboxKey, jobId: z.string() }),
  z.strictObject({ type: z.literal("pause"), tenant: tenantId }),
  // A sandbox of the tenant waits, and the tenant is at its ceiling of held sandboxes.
  z.strictObject({ type: z.literal("room"), tenant: z.string() }),
  z.strictObject({ type: z.literal("profiles"), layer: layerId, version: z.number().int() }),
  z.strictObject({ type: z.literal("secrets"), tenant: tenantId }),
  z.strictObject({ type: z.literal("drain"), worker: workerId }),
  z.strictObject({ type: z.literal("ping"), worker: workerId, answer: z.string().max(64) }),
]);
export type ControlMessage = z.infer<typeof controlMessage>;
