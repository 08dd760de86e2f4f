import { setTimeout as sleep } from "node:timers/promises";
import type { Jobs } from "@berth/client";
import { type BatchEnd, type BatchStore, batchJobId } from "@berth/ledger";
import { type JobResult, sandboxKey } from "@berth/protocol";

/** One line of a batch's results. A reader resumes with `?after=` and its last `position`. */
export interface BatchLine {
  readonly position: number;
  readonly index: number;
  readonly jobId: string;
  readonly tenant?: string;
  readonly session?: string;
  readonly result?: JobResult;
  readonly refused?: string;
  readonly expired?: true;
}

/** Results in memory at once; each may take megabytes. */
const pageSize = 32;
const lookMs = 300;

/** Yields a batch's results in the order of their ends; waits for more while the batch runs. */
export async function* batchLines(
  parts: { readonly batches: BatchStore; readonly jobs: Jobs },
  id: string,
  options: { readonly after: number; readonly follow: boolean; readonly signal: AbortSignal },
): AsyncGenerator<readonly BatchLine[]> {
  const { batches } = parts;
  for (let position = options.after; !options.signal.aborted; ) {
    // Read the state before the page: an end that comes later appears on the next page.
    const batch = await batches.get(id);
    const page = await batches.ends(id, position, pageSize);
    if (page.length > 0)
      yield await Promise.all(page.map((end, at) => lineOf(parts, id, end, position + at + 1)));
    position += page.length;
    if (page.length === pageSize) continue;
    if (!batch || batch.state === "finished" || !options.follow) return;
    await sleep(lookMs, undefined, { signal: options.signal }).catch(() => {});
  }
}

async function lineOf(
  { batches, jobs }: { readonly batches: BatchStore; readonly jobs: Jobs },
  id: string,
  { index, key }: BatchEnd,
  position: number,
): Promise<BatchLine> {
  const about = { position, index, jobId: batchJobId(id, index) };
  if (key === undefined) return { ...about, refused: await batches.refusedProblem(id, index) };
  const ended = await jobs.ended({ id: about.jobId, sandbox: sandboxKey.parse(key) });
  return ended ? { ...about, ...ended } : { ...about, expired: true };
}
