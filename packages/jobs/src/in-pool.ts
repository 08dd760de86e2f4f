export type AddTask = (task: () => Promise<void>) => Promise<void>;

/**
 * Runs the tasks that `produce` adds, at most `limit` at once; adding waits for room. On the first error it starts no further task,
 * waits for the running ones, and throws. Nothing runs after it returns.
 */
export async function inPool(limit: number, produce: (add: AddTask) => Promise<void>): Promise<void> {
  const running = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | undefined;
  const add: AddTask = async (task) => {
    while (running.size >= limit) await Promise.race(running);
    if (failure) throw failure.error;
    const one: Promise<void> = task()
      .catch((error: unknown) => {
        failure ??= { error };
      })
      .finally(() => running.delete(one));
    running.add(one);
  };
  try {
    await produce(add);
  } catch (error) {
    failure ??= { error };
  }
  await Promise.all(running);
  if (failure) throw failure.error;
}
