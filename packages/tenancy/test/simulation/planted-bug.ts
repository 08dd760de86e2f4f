import { LeaseKeeper } from "../../src/lease-keeper.ts";
import type { VirtualTime } from "./virtual-time.ts";

/**
 * Bugs that the simulation can be given, to see that it finds them:
 *
 * - `skip-the-fence`: Redis does not compare epoch and instance before it takes, begins, publishes or completes.
 * - `expire-early`: Redis gives a lease away when half of it is left.
 * - `complete-before-the-record`: a job leaves its queue in a step before the one that writes its terminal record.
 * - `begin-before-open`: a job is recorded as begun before its sandbox is open.
 * - `begin-behind-others`: a job begins in the step that takes it although another was taken before it.
 * - `renew-without-progress`: a lease is renewed although the tenancy's loop is stuck.
 */
export const plantedBugs = [
  "skip-the-fence",
  "expire-early",
  "complete-before-the-record",
  "begin-before-open",
  "begin-behind-others",
  "renew-without-progress",
] as const;
export type PlantedBug = (typeof plantedBugs)[number];

/** Every loop of the process counts as come round. What it gives back restores the product's own function. */
export function renewWithoutProgress(time: VirtualTime, everyMs: number): () => void {
  const { keep } = LeaseKeeper.prototype;
  LeaseKeeper.prototype.keep = function (signal) {
    const comeRound = () => {
      if (signal.aborted) return;
      this.round();
      time.after(everyMs, comeRound);
    };
    comeRound();
    return keep.call(this, signal);
  };
  return () => {
    LeaseKeeper.prototype.keep = keep;
  };
}
