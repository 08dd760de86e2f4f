import { type Job, type SandboxKey, shortPreview } from "@berth/protocol";

export interface ApprovalWebhookOptions {
  /** The operator's. Undefined: there is no webhook. */
  readonly url: string | undefined;
  readonly onFailed: (message: string) => void;
}

export interface WaitingJob {
  /** Shows everything that the job would run. */
  readonly preview: string;
  /** The `approvalDigest` that an approval must name. */
  readonly digest: string;
  readonly expiresMs: number;
}

const tries = 3;
const deadlineMs = 5_000;
const pauseMs = 1_000;
/** Short enough for a chat message. */
const shownLength = 500;

/** Notifies the operator that a job waits for an approval: one POST, tried three times, in the background. */
export class ApprovalWebhook {
  readonly #options: ApprovalWebhookOptions;

  constructor(options: ApprovalWebhookOptions) {
    this.#options = options;
  }

  notify(sandbox: SandboxKey, job: Job, { preview: whole, digest, expiresMs }: WaitingJob): void {
    const { id: jobId, tenant, agent, session, request } = job;
    const { url, onFailed } = this.#options;
    if (url === undefined) return;
    const preview = shortPreview(whole, shownLength);
    const about = { jobId, tenant, agent, session, sandbox, kind: request.kind, preview, digest, expiresMs };
    const body = JSON.stringify({ type: "approval.waiting", ...about });
    post(url, body).catch((error: Error) => onFailed(error.message));
  }
}

async function post(url: string, body: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const headers = { "content-type": "application/json" };
      const signal = AbortSignal.timeout(deadlineMs);
      const answer = await fetch(url, { method: "POST", body, headers, signal, redirect: "error" });
      await answer.body?.cancel();
      if (answer.ok) return;
      throw new Error(`the approval webhook answered ${answer.status}`);
    } catch (error) {
      if (attempt >= tries) throw error;
      await new Promise((resolve) => setTimeout(resolve, pauseMs * attempt).unref());
    }
  }
}
