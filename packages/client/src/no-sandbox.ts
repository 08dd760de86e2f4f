import { setTimeout as sleep } from "node:timers/promises";
import type { Why, WhyCode } from "@berth/ledger";

/** What keeps a job from a sandbox, and where its words are in `why.reasons`. */
export interface NoSandbox {
  readonly why: Why;
  readonly index: number;
}

export interface NoSandboxOptions {
  /** Looks at the job. */
  readonly why: () => Promise<Why>;
  /** The wait for the job is over. */
  readonly signal: AbortSignal;
}

/** A sandbox that is to be had is there by then, mostly: then nothing is looked at. */
const firstLookMs = 500;
const nextLookMs = 1_000;
/** What keeps a job from its sandbox, and from when on a call need not wait for it to pass. */
const countsAfterMs: Partial<Readonly<Record<WhyCode, number>>> = {
  "no-engine": 0,
  // Another worker may be about to try.
  "sandbox-trouble": 3_000,
  // A worker's restart takes less.
  "no-worker": 5_000,
  "host-offline": 5_000,
};

/**
 * For calls that a caller waits on: looks now and then whether a worker can start the job's sandbox. Gives what keeps them from it;
 * undefined once the job has begun or ended, or the wait for it is over.
 */
export async function whenNoSandbox({ why, signal }: NoSandboxOptions): Promise<NoSandbox | undefined> {
  const startedMs = performance.now();
  for (let pauseMs = firstLookMs; ; pauseMs = nextLookMs) {
    await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => {});
    if (signal.aborted) return undefined;
    // While Redis does not answer nothing is known.
    const now = await why().catch(() => undefined);
    if (!now) continue;
    if (now.state !== "waiting") return undefined;
    const waitedMs = performance.now() - startedMs;
    const index = now.codes.findIndex(
      (code) => waitedMs >= (countsAfterMs[code] ?? Number.POSITIVE_INFINITY),
    );
    // A worker that holds the sandbox is starting it: what kept it from that may be over.
    if (index >= 0 && now.heldBy === undefined) return { why: now, index };
  }
}
