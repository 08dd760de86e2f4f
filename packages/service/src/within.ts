/** Waits at most that long for a promise. Undefined if it is late, as during a Redis outage, or if it rejects. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(late.resolve, ms, undefined);
  const value = await Promise.race([promise.catch(() => undefined), late.promise]);
  clearTimeout(timer);
  return value;
}
