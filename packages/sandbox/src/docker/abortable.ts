/** dockerode takes an abort signal with every call; its types know it for a few only. */
export function abortable<T extends object>(abortSignal: AbortSignal, options: T): T {
  return { ...options, abortSignal } as unknown as T;
}
