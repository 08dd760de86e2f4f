/** Waits for something that may never come, such as an answer of a Redis that is away, no longer than this. Its failure is no news. */
export async function within(ms: number, something: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([something.catch(() => {}), late]);
  clearTimeout(timer);
}
