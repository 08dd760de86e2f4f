import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectOnce = runInNewContext("gc") as () => void;

const mebibyte = 1024 * 1024;
/** V8 frees buffers on threads of its own, some time after the collection that found them. */
const rounds = 100;

/** Bytes in use after a collection. */
async function inUse(round: number): Promise<number> {
  collectOnce();
  await new Promise((resolve) => setTimeout(resolve, round < 3 ? 0 : 20));
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

export interface Growth {
  /** The most that this process took from the system over what it had before. */
  readonly peakMiB: number;
  /** What is still reachable afterwards. */
  readonly retainedMiB: number;
}

/** How much this process, which plays the worker, grows while something runs. */
export async function growthOf(run: () => Promise<unknown>): Promise<Growth> {
  let before = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round++) before = Math.min(before, await inUse(round));
  const rssBefore = process.memoryUsage.rss();
  let peak = rssBefore;
  const look = () => {
    peak = Math.max(peak, process.memoryUsage.rss());
  };
  const timer = setInterval(look, 20);
  try {
    await run();
  } finally {
    clearInterval(timer);
  }
  look();
  // What is held stays however often one collects; what is not goes.
  let after = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds && after > before + mebibyte; round++)
    after = Math.min(after, await inUse(round));
  return { peakMiB: (peak - rssBefore) / mebibyte, retainedMiB: (after - before) / mebibyte };
}
