/** Calls `run` for each item, with at most `most` calls at once, started in order. After the first failure it starts no more. */
export async function pipelined<T>(
  most: number,
  items: Iterable<T> | AsyncIterable<T>,
  run: (item: T) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  const failures: unknown[] = [];
  for await (const item of items) {
    if (failures.length > 0) break;
    const one: Promise<void> = run(item)
      .catch((error: unknown) => void failures.push(error))
      .finally(() => running.delete(one));
    running.add(one);
    if (running.size >= most) await Promise.race(running);
  }
  await Promise.all(running);
  if (failures.length > 0) throw failures[0];
}
