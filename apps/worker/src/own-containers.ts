import { isFault, sandboxKey, type WorkerId } from "@berth/protocol";
import type { DockerDriver } from "@berth/sandbox";
import type { Logger } from "pino";
import type { FleetMember } from "./member.ts";

/**
 * Handles the containers that an earlier process of this worker left. The worker adopts each running one whose lease it can take again,
 * and removes the others, in every state.
 */
export async function adoptOwnContainers(
  driver: DockerDriver,
  member: FleetMember,
  workerId: WorkerId,
  log: Logger,
): Promise<void> {
  try {
    const parked = new Set((await driver.parked()).map(({ containerId }) => containerId));
    const own = (await driver.list()).filter(({ id, worker }) => worker === workerId && !parked.has(id));
    const adopted = new Set<string>();
    for (const { id, key, epoch, state } of own) {
      const parsed = sandboxKey.safeParse(key);
      if (state === "running" && parsed.success && (await member.adopt(parsed.data, epoch))) adopted.add(id);
    }
    const { removed } = await driver.reap(
      ({ id, worker }) => own.some((one) => one.id === id) && worker === workerId && !adopted.has(id),
    );
    if (own.length > 0)
      log.info({ event: "worker.leftovers", adopted: adopted.size, removed: removed.length });
  } catch (error) {
    // The worker stays up without an engine; jobs wait or are refused, as configured, until it is back.
    if (!isFault(error)) throw error;
    log.error({ event: "engine.trouble", detail: error.message });
  }
}
