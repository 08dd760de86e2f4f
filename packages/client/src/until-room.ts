import { setTimeout as sleep } from "node:timers/promises";

/** Pauses between two tries. A full queue takes more once a job has ended. */
const retryMs = { first: 50, last: 2_000 } as const;

export interface UntilRoomOptions {
  /** Whether to try again after this error. */
  readonly goesOn: (error: unknown) => boolean;
  /** Ends a pause, and with it the tries. */
  readonly signal: AbortSignal;
}

/** Submits until the fleet accepts. Undefined: the signal fired between two tries. Throws the first error for which `goesOn` is false. */
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
