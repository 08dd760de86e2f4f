import type { Berth, JobView } from "@berth/client";

const atOnce = 200;

/** The known jobs of a batch, by their ids. Stops at the first page of positions without a job. */
export async function* batchJobs(berth: Berth, id: string): AsyncGenerator<JobView> {
  for (let from = 0; ; from += atOnce) {
    const numbers = Array.from({ length: atOnce }, (_, offset) => from + offset);
    const page = await Promise.all(numbers.map((number) => berth.jobs.find(`${id}-${number}`)));
    const known = page.filter((job) => job !== undefined);
    yield* known;
    if (known.length === 0) return;
  }
}
