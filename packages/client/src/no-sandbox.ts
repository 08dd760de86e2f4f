import { setTimeout as sleep } from "node:timers/promises";
import type { Why, WhyCode } from "@berth/ledger";

/** Why no worker can start a job's sandbox: an index into `why.reasons`. */
export interface NoSandbox {
  readonly why: Why;
  readonly index: number;
}

export interface NoSandboxOptions {
  /** Reads what the job waits for. */
  readonly why: () => Promise<Why>;
  /** Fires when the caller stops waiting for the job. */
  readonly signal: AbortSignal;
}

/** Most sandboxes start within this time, and the job is then never looked up. */
const firstLookMs = 500;
const nextLookMs = 1_000;
/** Reasons that keep a job from its sandbox, and after how long a call need not wait for them to pass. */
const countsAfterMs: Partial<Readonly<Record<WhyCode, number>>> = {
  "no-engine": 0,
  // Another worker may be about to try.
  "sandbox-trouble": 3_000,
  // A worker restarts faster than this.
  "no-worker": 5_000,
  "host-offline": 5_000,
};

/**
 * For synchronous calls: checks periodically whether a worker can start the job's sandbox. Returns the reason if none can;
 * undefined once the job starts or ends, or the wait is over.
 */
export async function whenNoSandbox({ why, signal }: NoSandboxOptions): Promise<NoSandbox | undefined> {
  const startedMs = performance.now();
  for (let pauseMs = firstLookMs; ; pauseMs = nextLookMs) {
    await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => {});
    if (signal.aborted) return undefined;
    // Redis did not answer, so nothing is known; try again.
    const now = await why().catch(() => undefined);
    if (!now) continue;
    if (now.state !== "waiting") return undefined;
    const waitedMs = performance.now() - startedMs;
    const index = now.codes.findIndex(
      (code) => waitedMs >= (countsAfterMs[code] ?? Number.POSITIVE_INFINITY),
    );
    // A worker that holds the sandbox is starting it, so the reason may be out of date.
    if (index >= 0 && now.heldBy === undefined) return { why: now, index };
  }
}
