/** What is there comes in one go; a pause this long means that there is no more yet. */
const quietMs = 700;

/** What a stream gives until it pauses or ends. The stream is left where it is; closing the door ends it. */
export async function* soFar<T>(events: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = events[Symbol.asyncIterator]();
  for (;;) {
    const quiet = Promise.withResolvers<undefined>();
    const timer = setTimeout(quiet.resolve, quietMs, undefined);
    const next = iterator.next();
    next.catch(() => {});
    const got = await Promise.race([next, quiet.promise]).finally(() => clearTimeout(timer));
    if (got === undefined || got.done) return;
    yield got.value;
  }
}
