import type { Approvals } from "@berth/ledger";
import { Fault, type Job, jobPreview, type SandboxKey, shortPreview } from "@berth/protocol";
import type { LaterPort } from "@berth/tenancy";
import { approvalDigest } from "./approval-digest.ts";
import type { JobTools } from "./job-tools.ts";

export interface ApprovalGateOptions {
  readonly key: SandboxKey;
  readonly approvals: Approvals;
  readonly later: LaterPort;
  /** Moves a scheduled job to its queue now. */
  readonly hurry: (jobId: string) => Promise<unknown>;
  readonly onAsked: (job: Job, expiresMs: number, asked: Asked) => void;
}

export interface Asked {
  /** Shows everything that the job would run. */
  readonly preview: string;
  readonly digest: string;
}

export interface GateOptions {
  readonly expiresMs: number;
  readonly tools: JobTools;
  /** Masks secrets in what an administrator sees. */
  readonly mask: (text: string) => string;
}

/**
 * Lets a job run only when an administrator has approved it. A job that waits is scheduled for the time when its approval expires; a
 * decision moves it to its queue at once.
 */
export class ApprovalGate {
  readonly #options: ApprovalGateOptions;
  /** Jobs that wait for approval and may not be in the schedule yet. */
  readonly #waiting = new Set<string>();

  constructor(options: ApprovalGateOptions) {
    this.#options = options;
  }

  /** Throws `approval-needed`, `approval-refused` or `approval-expired` unless the job is approved. */
  async check(job: Job, { expiresMs, tools, mask }: GateOptions): Promise<void> {
    const { key: sandbox, approvals, onAsked } = this.#options;
    const { id: jobId, tenant, session, agent, request } = job;
    const whole = jobPreview(job, { prepare: tools.prepare, mask });
    const what = {
      jobId,
      tenant,
      session,
      agent,
      sandbox,
      kind: request.kind,
      preview: shortPreview(whole),
      whole,
      digest: approvalDigest(job, tools.digest),
    };
    const answer = await approvals.ask(what, expiresMs);
    switch (answer.state) {
      case "approved":
        return;
      case "refused":
        throw new Fault("approval-refused", { jobId, reason: answer.reason });
      case "expired":
        throw new Fault("approval-expired", { jobId });
      case "asked":
      case "waiting":
        if (answer.state === "asked") onAsked(job, expiresMs, { preview: whole, digest: what.digest });
        this.#waiting.add(jobId);
        throw new Fault("approval-needed", { jobId, expiresMs: answer.leftMs });
    }
  }

  /** The schedule for these jobs. If the decision came before the job was in the schedule, the job runs at once. */
  get later(): LaterPort {
    const { later, approvals, hurry, key } = this.#options;
    return {
      ...later,
      retry: async (next, dueAtMs) => {
        await later.retry(next, dueAtMs);
        if (!this.#waiting.has(next.id)) return;
        if ((await approvals.isWaiting(key, next.id)) === false) await hurry(next.id);
        this.#waiting.delete(next.id);
      },
    };
  }
}
