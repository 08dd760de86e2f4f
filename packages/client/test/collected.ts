import { setTimeout as pause } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const rounds = 5;

/**
 * Bytes that are held: buffers, and the heap. The least after several collections: V8 frees some things only with the
 * next collection, or on a thread of its own, while what is held stays.
 */
export async function inUse(): Promise<{ readonly buffers: number; readonly heap: number }> {
  let [buffers, heap] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < rounds; round++) {
    collect();
    await pause(5);
    const now = process.memoryUsage();
    buffers = Math.min(buffers, now.arrayBuffers);
    heap = Math.min(heap, now.heapUsed);
  }
  return { buffers, heap };
}
