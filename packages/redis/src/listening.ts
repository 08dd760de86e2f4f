import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { isClusterConnection } from "./topology.ts";

/** Redis answers this often on a connection that only listens. */
const askMs = 2_000;
/** Longer than the socket timeout of a single Redis' connection, which makes that anew by itself. */
const silentMs = 6_000;

/**
 * Subscribes to a channel, and notices within seconds that the other end of the connection is gone: nothing else is sent on it that would
 * need an answer. Subscribing again changes nothing, and is answered on the very connection that listens, also on a cluster.
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
