import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectOnce = runInNewContext("gc") as () => void;

/** Buffers are freed a turn after the collection that found them. */
async function collect(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    collectOnce();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const mebibyte = 1024 * 1024;

export interface Growth {
  /** The most that this process took from the system over what it had before. */
  readonly peakMiB: number;
  /** What is still reachable afterwards. */
  readonly retainedMiB: number;
}

/** How much this process, which plays the worker, grows while something runs. */
export async function growthOf(run: () => Promise<unknown>): Promise<Growth> {
  await collect();
  const before = process.memoryUsage();
  let peak = before.rss;
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
  await collect();
  const after = process.memoryUsage();
  const held = ({ heapUsed, external }: NodeJS.MemoryUsage) => heapUsed + external;
  return { peakMiB: (peak - before.rss) / mebibyte, retainedMiB: (held(after) - held(before)) / mebibyte };
}
