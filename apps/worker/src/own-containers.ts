import { isFault, sandboxKey, type WorkerId } from "@berth/protocol";
import type { SandboxDriver, SandboxRecord } from "@berth/sandbox";
import type { Logger } from "pino";
import type { FleetMember } from "./member.ts";

export interface OwnContainersParts {
  readonly driver: Pick<SandboxDriver, "list" | "reap">;
  readonly member: Pick<FleetMember, "adopt">;
  readonly worker: WorkerId;
  readonly log: Pick<Logger, "info" | "error">;
}

/**
 * Handles the containers that an earlier process of this worker left. The worker adopts each running one whose lease it can take again,
 * and removes the others, in every state.
 */
export async function adoptOwnContainers({ driver, member, worker, log }: OwnContainersParts): Promise<void> {
  // A parked one may have another worker's job in it a moment later.
  const isOwn = (record: SandboxRecord) => record.worker === worker && record.isParked !== true;
  try {
    const own = (await driver.list()).filter(isOwn);
    const adopted = new Set<string>();
    for (const { id, key, epoch, state } of own) {
      const parsed = sandboxKey.safeParse(key);
      if (state === "running" && parsed.success && (await member.adopt(parsed.data, epoch))) adopted.add(id);
    }
    const { removed } = await driver.reap(
      (record) => own.some(({ id }) => id === record.id) && isOwn(record) && !adopted.has(record.id),
    );
    if (own.length > 0)
      log.info({ event: "worker.leftovers", adopted: adopted.size, removed: removed.length });
  } catch (error) {
    // The worker stays up without an engine; jobs wait or are refused, as configured, until it is back.
    if (!isFault(error)) throw error;
    log.error({ event: "engine.trouble", detail: error.message });
  }
}
