import { setTimeout as sleep } from "node:timers/promises";

/** Between two tries: what was full takes more when something has ended. */
const retryMs = { first: 50, last: 2_000 } as const;

export interface UntilRoomOptions {
  /** Whether to try again after a try that failed. */
  readonly goesOn: (error: unknown) => boolean;
  /** Ends a pause, and the tries with it. */
  readonly signal: AbortSignal;
}

/** Tries to hand over a job until the fleet has it. Undefined: the signal came between two tries. Throws the first error that ends the tries. */
export async function untilRoom<T>(
  submit: () => Promise<T>,
  { goesOn, signal }: UntilRoomOptions,
): Promise<T | undefined> {
  for (let waitMs: number = retryMs.first; ; waitMs = Math.min(waitMs * 2, retryMs.last)) {
    try {
      return await submit();
    } catch (error) {
      if (!goesOn(error)) throw error;
      await sleep(waitMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return undefined;
    }
  }
}
