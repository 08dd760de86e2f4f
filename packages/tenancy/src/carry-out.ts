import { isFault, isWorkspaceRequest, type Job, type JobResult } from "@berth/protocol";
import { bareResult } from "./bare-result.ts";
import { LeaseOver } from "./lease-over.ts";
import { OutputBatch } from "./output-batch.ts";
import type { EventsPort, OpenSandbox, PublishResult, TenancyPorts } from "./tenancy-ports.ts";

export interface CarryOut {
  readonly jobId: string;
  readonly job: Job;
  readonly sandbox: OpenSandbox;
  readonly ports: Pick<TenancyPorts, "events" | "clock">;
  /** Aborts when the job has to end, or the lease is lost. */
  readonly signal: AbortSignal;
  /** Aborts when the lease is lost. */
  readonly fence: AbortSignal;
  /** Throws when the lease's time is over. */
  readonly check: () => void;
  /** Retries until it is published or the lease is lost. */
  readonly publish: (send: () => Promise<PublishResult>) => Promise<unknown>;
  readonly onTrouble: (error: unknown) => void;
}

/**
 * Carries out a job that has begun, and publishes its output meanwhile. Throws only when the lease is lost. `untouched`: init took nothing
 * of it, since as far as init knew the worker's lease was over.
 */
export async function carryOut(options: CarryOut): Promise<JobResult | "untouched"> {
  const { jobId, job, sandbox, signal, fence } = options;
  const { batch, publishNext } = publisherOf(options);
  try {
    if (job.request.kind === "destroy") {
      await sandbox.destroy(signal);
      return bareResult({ kind: "done" });
    }
    if (job.request.kind === "stop") {
      await sandbox.stop(signal);
      return bareResult({ kind: "done" });
    }
    if (isWorkspaceRequest(job.request)) {
      const value = await sandbox.workspace(job.request, { jobId: job.id, signal, check: options.check });
      return { ...bareResult({ kind: "done" }), value };
    }
    return await sandbox.run(job.request, {
      signal,
      onOutput: (piece) => batch.add(piece),
      onArtifact: async (artifact) => {
        await batch.flush();
        await publishNext((events, part) => events.artifact(jobId, part, artifact));
      },
      check: options.check,
      conversation: { tenant: job.tenant, agent: job.agent, session: job.session, jobId: job.id },
    });
  } catch (error) {
    fence.throwIfAborted();
    if (signal.aborted) return bareResult({ kind: "cancelled", reason: String(signal.reason) });
    if (error instanceof LeaseOver)
      return error.touched
        ? bareResult({
            kind: "lost",
            message: "its worker was late, and the sandbox ended it; it may have run in part",
          })
        : "untouched";
    // No sandbox means no execution: the job is refused with the reason, other tenants are not affected.
    if (isFault(error)) return bareResult({ kind: "refused", code: error.code, message: error.message });
    options.onTrouble(error);
    return bareResult({
      kind: "lost",
      message: "it failed for an unexpected reason, which the log of its worker has; it may have run in part",
    });
  } finally {
    await batch.flush();
  }
}

/** Publishes one part after the other: Redis recognises a repeated part only while it is the latest. */
function publisherOf({ jobId, sandbox, ports, publish }: CarryOut) {
  let parts = 0;
  let published: Promise<unknown> = Promise.resolve();
  const publishNext = (
    event: (events: EventsPort, part: number) => Promise<PublishResult>,
  ): Promise<unknown> => {
    const part = parts++;
    published = published.then(() => publish(() => event(ports.events, part)));
    return published;
  };
  const batch = new OutputBatch(sandbox.limits.keptBytes, ports.clock, (pieces) =>
    publishNext((events, part) => events.output(jobId, part, pieces)),
  );
  return { batch, publishNext };
}
