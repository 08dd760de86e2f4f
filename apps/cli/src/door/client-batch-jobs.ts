import type { JobView } from "@berth/client";

const atOnce = 200;
/** How many positions a probe for the first known job looks at, how far apart probes are, and where they end. */
const probeWidth = 10;
const probeFactor = 1.1;
const mostJobs = 20_000_000;

type FindJob = (id: string) => Promise<JobView | undefined>;
type Find = (from: number, count: number) => Promise<JobView[]>;

/** The known jobs of a batch, by their ids. Stops at the first page of positions without a job. */
export async function* batchJobs(findJob: FindJob, id: string): AsyncGenerator<JobView> {
  const find: Find = async (from, count) => {
    const numbers = Array.from({ length: count }, (_, offset) => from + offset);
    const found = await Promise.all(numbers.map((number) => findJob(`${id}-${number}`)));
    return found.filter((job) => job !== undefined);
  };
  for (let from = await firstPage(find); from !== undefined; from += atOnce) {
    const known = await find(from, atOnce);
    yield* known;
    if (known.length === 0) return;
  }
}

/** Where the known jobs begin. The first ones of a batch that has run for more than a day have expired. */
async function firstPage(find: Find): Promise<number | undefined> {
  const isKnown = async (from: number, count: number) => (await find(from, count)).length > 0;
  if (await isKnown(0, atOnce)) return 0;
  for (let at = atOnce; at < mostJobs; at = Math.ceil(at * probeFactor)) {
    if (!(await isKnown(at, probeWidth))) continue;
    let from = at;
    while (from > 0 && (await isKnown(Math.max(0, from - atOnce), atOnce))) from -= atOnce;
    return Math.max(0, from);
  }
  return undefined;
}
