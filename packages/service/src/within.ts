/** What a promise gives within that time; undefined when it is late, such as an answer of a Redis that is away, or fails. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(late.resolve, ms, undefined);
  const value = await Promise.race([promise.catch(() => undefined), late.promise]);
  clearTimeout(timer);
  return value;
}
