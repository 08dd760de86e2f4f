import { type JobResult, redisKeys, type SandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { readKnownEvent } from "./job-events.ts";

const mostBytes = 2_048;
/** An event may hold 64 KiB of output. */
const pageSize = 8;
const mostPages = 8;

/**
 * The last lines that an attempt of a job wrote, 2 KiB at most, and how it ended. They are read from the job's events, and expire with
 * them. `isLast`: no attempt was added after it.
 */
export async function lastLines(
  redis: Redis,
  { key, jobId }: { readonly key: SandboxKey; readonly jobId: string },
  { attempt, isLast }: { readonly attempt: number; readonly isLast: boolean },
): Promise<string[]> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let isInside = isLast;
  let before = "+";
  for (let page = 0; page < mostPages; page++) {
    const stream = redisKeys.events(key, jobId);
    const entries = await redis.xrevrangeBuffer(stream, before, "-", "COUNT", pageSize);
    for (const entry of entries) {
      before = `(${entry[0]}`;
      const event = readKnownEvent(entry);
      if (event === undefined) continue;
      if (event.type === "finished" && isInside) return shown(Buffer.from(textOf(event.result)));
      if (event.type === "retrying") isInside = event.attempt === attempt;
      if (event.type === "started" && isInside) return shown(Buffer.concat(pieces));
      if ((event.type === "stdout" || event.type === "stderr") && isInside) {
        pieces.unshift(event.bytes);
        bytes += event.bytes.length;
        if (bytes >= mostBytes) return shown(Buffer.concat(pieces));
      }
    }
    if (entries.length < pageSize) break;
  }
  return shown(Buffer.concat(pieces));
}

function textOf({ text, value: { steps = [] } }: JobResult): string {
  return text ?? steps.map(textOf).join("\n");
}

/** Cuts output for the board. */
function shown(output: Buffer): string[] {
  const tail = output.subarray(Math.max(0, output.length - mostBytes));
  // The first line may have lost its beginning, and the first character some of its bytes.
  const from = tail.length < output.length ? tail.indexOf("\n") + 1 : 0;
  const lines = tail.subarray(from).toString("utf8").split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}
