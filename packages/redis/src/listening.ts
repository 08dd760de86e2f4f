import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { isClusterConnection } from "./topology.ts";

/** How often to send a command on a connection that only listens, so that Redis has something to answer. */
const askMs = 2_000;
/** Longer than the socket timeout of a connection to a single Redis, which reopens itself after it. */
const silentMs = 6_000;

/**
 * Subscribes to a channel, and notices within seconds if the other end of the connection is gone. A subscriber sends nothing, so it would
 * never miss an answer. Therefore it subscribes again and again: that changes nothing, and Redis answers on the connection that listens,
 * also on a cluster.
 */
export async function listen(subscriber: Redis, channel: string, signal: AbortSignal): Promise<void> {
  await subscriber.subscribe(channel);
  void watch(subscriber, channel, signal).catch(() => {});
}

async function watch(subscriber: Redis, channel: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(askMs, undefined, { signal, ref: false });
    const answered = subscriber.subscribe(channel).then(
      () => true,
      () => true,
    );
    const silent = sleep(silentMs, false, { signal, ref: false });
    // A cluster's subscriber has no socket timeout. This connects it to another node.
    if (!(await Promise.race([answered, silent])) && isClusterConnection(subscriber))
      subscriber.disconnect(true);
  }
}
