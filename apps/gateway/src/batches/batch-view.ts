import type { StoredBatch } from "@berth/ledger";
import { z } from "zod";
import { output } from "../schemas/registry.ts";

export const batchSchema = output(
  "Batch",
  z.object({
    id: z.string(),
    state: z.enum(["uploading", "running", "cancelling", "finished"]),
    submitted: z.number().describe("orders taken so far"),
    total: z.number().optional().describe("known once all orders are in"),
    finished: z.number(),
    failed: z.number().describe("of those finished: not exited with 0, or refused"),
    refused: z.number().describe("invalid orders; they count as finished and failed"),
    createdAtMs: z.number(),
    finishedAtMs: z.number().optional(),
    cancelledAtMs: z.number().optional(),
    webhook: z
      .object({
        state: z.enum(["waiting", "delivered", "given-up"]),
        tries: z.number(),
        problem: z.string().optional(),
      })
      .optional(),
  }),
);

/** A batch as the API shows it. */
export function batchView(batch: StoredBatch): z.infer<typeof batchSchema> {
  const { id, state, submitted, total, finished, failed, refused, createdAtMs, finishedAtMs, cancelledAtMs } =
    batch;
  const { webhookState = "waiting", webhookTries: tries, webhookProblem } = batch;
  return {
    id,
    state,
    submitted,
    ...(total === undefined ? {} : { total }),
    finished,
    failed,
    refused,
    createdAtMs,
    ...(finishedAtMs === undefined ? {} : { finishedAtMs }),
    ...(cancelledAtMs === undefined ? {} : { cancelledAtMs }),
    ...(batch.webhook === undefined
      ? {}
      : {
          webhook: {
            state: webhookState,
            tries,
            ...(webhookProblem === undefined ? {} : { problem: webhookProblem }),
          },
        }),
  };
}
