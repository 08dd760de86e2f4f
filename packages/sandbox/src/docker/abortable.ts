/** dockerode takes an abort signal with every call, but its types have it for a few calls only. */
export function abortable<T extends object>(abortSignal: AbortSignal, options: T): T {
  return { ...options, abortSignal } as unknown as T;
}
