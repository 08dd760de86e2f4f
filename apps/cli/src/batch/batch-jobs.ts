import type { Door, DoorJob, ShownState } from "../door.ts";

const atOnce = 200;

export interface BatchJob {
  readonly index: number;
  readonly state: ShownState;
  readonly job: DoorJob;
}

/** The jobs of a batch that are known, by their ids. Ends where a whole page of numbers is nobody's. */
export async function* batchJobs(door: Door, id: string): AsyncGenerator<BatchJob> {
  for (let from = 0; ; from += atOnce) {
    const page = await Promise.all(
      Array.from({ length: atOnce }, async (_, offset) => {
        const index = from + offset;
        const job = await door.job(`${id}-${index}`);
        return job && { index, job, state: await job.status() };
      }),
    );
    const known = page.filter((one) => one !== undefined);
    yield* known;
    if (known.length === 0) return;
  }
}
