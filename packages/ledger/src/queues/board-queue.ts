import { fleetQueuePrefix, queuePrefix, type SandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { Queue } from "bullmq";
import { deadQueue } from "../dead-letters/dead-letters.ts";
import { scheduleQueue } from "../schedule/schedule.ts";
import { bullConnection } from "./connection.ts";
import { jobQueueName } from "./queue-layout.ts";

/** A queue that a dashboard may show: one of the fleet's, by its name, or a sandbox's own. */
export type BoardQueueId =
  | { readonly kind: "schedule" }
  | { readonly kind: "dead" }
  | { readonly kind: "offers"; readonly name: string }
  | { readonly kind: "sandbox"; readonly key: SandboxKey };

/** A queue as BullMQ's dashboards take it. Creating it writes nothing, so that looking at a queue leaves no keys. */
export function boardQueue(redis: Redis, queueId: BoardQueueId): Queue {
  const { name, prefix } = nameOf(queueId);
  const queue = new Queue(name, { connection: bullConnection(redis), prefix, skipMetasUpdate: true });
  queue.on("error", () => {});
  return queue;
}

function nameOf(queueId: BoardQueueId): { readonly name: string; readonly prefix: string } {
  switch (queueId.kind) {
    case "schedule":
      return scheduleQueue;
    case "dead":
      return deadQueue;
    case "offers":
      return { name: queueId.name, prefix: fleetQueuePrefix };
    case "sandbox":
      return { name: jobQueueName, prefix: queuePrefix(queueId.key) };
  }
}
