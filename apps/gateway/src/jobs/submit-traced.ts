import type { CheckedOrder, EnqueuedJob, SubmitOptions } from "@berth/client";
import { isFault } from "@berth/protocol";
import type { Parts } from "../parts.ts";

/**
 * Submits a request's only job in its own span. The job carries the span's context, so that the worker's spans continue it.
 * Requests with many jobs have no such spans: thousands would hide the rest.
 */
export async function submitTraced(
  { berth, tracing }: Pick<Parts, "berth" | "tracing">,
  order: CheckedOrder,
  options: SubmitOptions,
): Promise<EnqueuedJob> {
  const { id, tenant, request, trace } = order.job;
  const span = tracing?.begin({
    name: `berth.enqueue ${request.kind}`,
    kind: "producer",
    parent: trace,
    attributes: { "berth.job.id": id, "berth.kind": request.kind, "berth.tenant": tenant },
  });
  try {
    const job = await berth.submit(order, { ...options, trace: span?.context }).enqueued();
    span?.end({ attributes: { "berth.enqueued": job.isNew ? "added" : "known" } });
    return job;
  } catch (error) {
    span?.end({ error: isFault(error) ? error.code : "internal" });
    throw error;
  }
}
