/**
 * Runs beside a local fleet, in case the fleet's own process is killed. Workers and gateway then stop by themselves. The guard
 * stops Redis after them, since workers write their last records to it.
 *
 * Its stdin is a pipe. The fleet's process, the workers and the gateway hold the other end, so it closes when all of them are
 * gone. The only argument is a JSON list of what to clean up then.
 */
import { rm } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";

/** Redis writes its append-only file to disk before it exits. */
const redisEndsMs = 30_000;

const leftovers = z.object({
  redis: z.object({ pid: z.number(), socket: z.string() }).optional(),
  /** A temporary directory of the fleet, to remove. */
  directory: z.string().optional(),
});

export type Leftovers = z.infer<typeof leftovers>;

if (import.meta.main) {
  const { redis, directory } = leftovers.parse(JSON.parse(process.argv[2] ?? "{}"));
  for await (const _ of process.stdin);
  if (redis) await endRedis(redis);
  if (directory !== undefined) await rm(directory, { recursive: true, force: true, maxRetries: 3 });
}

/** Stops Redis through its socket, not by a signal: the pid may belong to another program by now. */
async function endRedis({ pid, socket }: NonNullable<Leftovers["redis"]>): Promise<void> {
  const giveUpAtMs = performance.now() + redisEndsMs;
  while (isAlive(pid) && performance.now() < giveUpAtMs) {
    if (await shutDown(socket)) return;
    await sleep(100);
  }
}

/** True when Redis exits, because it then closes the connection without an answer. */
function shutDown(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket, () => connection.write("SHUTDOWN\r\n"));
    connection.once("data", () => connection.destroy(new Error("Redis refused")));
    connection.once("error", () => resolve(false));
    connection.once("close", () => resolve(true));
  });
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
