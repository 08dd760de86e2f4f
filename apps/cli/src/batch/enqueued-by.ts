import type { EnqueuedJob } from "@berth/client";
import { Fault, type SandboxKey } from "@berth/protocol";
import { Complaint, UsageError } from "../complaint.ts";
import type { Door, JobOrder } from "../door.ts";
import { exitCodes } from "../exit-codes.ts";

/** A door's job as a batch takes it. What goes wrong is said in the words that a batch knows. */
export async function enqueuedBy(
  door: Door,
  key: SandboxKey,
  order: JobOrder,
  onFatal: (error: Complaint) => void,
): Promise<EnqueuedJob> {
  try {
    const job = await door.submit(order);
    const result = job.result();
    // Whoever awaits sees the error.
    result.catch(() => {});
    return { id: job.id, key, result, status: job.status, cancel: job.cancel, events: job.events };
  } catch (error) {
    throw error instanceof Complaint ? inBatchWords(error, onFatal) : error;
  }
}

function inBatchWords(error: Complaint, onFatal: (error: Complaint) => void): Error {
  if (["sandbox-full", "fleet-full", "tenant-full"].includes(error.code ?? ""))
    return new Fault("fleet-full", { waiting: 0, limit: 0 }, { cause: error });
  if (error instanceof UsageError || error.exitCode === exitCodes.usage)
    return new Fault("invalid-job", { problems: [error.message] });
  // Trying again would not help: the key is wrong, or not for this tenant.
  if (error.exitCode !== exitCodes.unreachable) onFatal(error);
  return error;
}
