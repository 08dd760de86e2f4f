/** Existing events arrive together; a pause this long means there are no more yet. */
const quietMs = 700;

export interface Pauses {
  /** How long to wait for the first event. */
  readonly firstMs?: number;
  /** How long to wait for each further one. */
  readonly nextMs?: number;
}

/** Yields from a stream until it pauses or ends. Leaves the stream open; closing the door ends it. */
export async function* soFar<T>(
  events: AsyncIterable<T>,
  { firstMs = quietMs, nextMs = quietMs }: Pauses = {},
): AsyncGenerator<T> {
  const iterator = events[Symbol.asyncIterator]();
  for (let pauseMs = firstMs; ; pauseMs = nextMs) {
    const quiet = Promise.withResolvers<undefined>();
    const timer = setTimeout(quiet.resolve, pauseMs, undefined);
    const next = iterator.next();
    next.catch(() => {});
    const got = await Promise.race([next, quiet.promise]).finally(() => clearTimeout(timer));
    if (got === undefined || got.done) return;
    yield got.value;
  }
}
