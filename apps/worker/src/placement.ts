import type { FleetView, Leases } from "@berth/ledger";
import type { SandboxKey, WorkerId } from "@berth/protocol";
import type { PlacementPort } from "@berth/tenancy";

export interface PlacementOptions {
  readonly leases: Leases;
  readonly fleet: Pick<FleetView, "workers">;
  readonly worker: WorkerId;
}

/** For so long a worker that failed to start a sandbox is expected to fail again. */
const failureCountsMs = 60_000;

/** Whether another worker may start a sandbox that this one could not: one that takes its offers, is well, and has not failed lately. */
export function placementOf(
  key: SandboxKey,
  epoch: number,
  { leases, fleet, worker }: PlacementOptions,
): PlacementPort {
  return {
    startFailed: async () => {
      const failures = await leases.startFailed({ key, epoch }, worker, failureCountsMs);
      // It has another holder already.
      if (failures === "fenced") return "elsewhere";
      const failed = new Set(failures);
      const { pool, home } = await leases.offerTarget(key);
      const others = (await fleet.workers()).filter(
        ({ id, pools, host, health }) =>
          !failed.has(id) && pools.includes(pool) && (home === undefined || host === home) && health === "ok",
      );
      return others.length > 0 ? "elsewhere" : "nowhere";
    },
  };
}
