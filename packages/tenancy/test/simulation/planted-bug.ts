import { Beginnings } from "../../src/beginnings.ts";
import { LeaseRenewer } from "../../src/lease-renewer.ts";
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
 * - `forget-before-hand-over`: a tenancy forgets that it began a job as soon as Redis has answered, and not when init gets the job.
 */
export const plantedBugs = [
  "skip-the-fence",
  "expire-early",
  "complete-before-the-record",
  "begin-before-open",
  "begin-behind-others",
  "renew-without-progress",
  "forget-before-hand-over",
] as const;
export type PlantedBug = (typeof plantedBugs)[number];

/** Every loop counts as making progress. The returned function restores the product's own function. */
export function renewWithoutProgress(time: VirtualTime, everyMs: number): () => void {
  const { keep } = LeaseRenewer.prototype;
  LeaseRenewer.prototype.keep = function (signal) {
    const reportProgress = () => {
      if (signal.aborted) return;
      this.round();
      time.after(everyMs, reportProgress);
    };
    reportProgress();
    return keep.call(this, signal);
  };
  return () => {
    LeaseRenewer.prototype.keep = keep;
  };
}

/** A job that began in the step that took it counts as handed over. The returned function restores the product's own function. */
export function forgetBeforeHandOver(): () => void {
  const { took } = Beginnings.prototype;
  Beginnings.prototype.took = function (take, fetched) {
    took.call(this, take, fetched);
    if (fetched) this.forget(fetched);
  };
  return () => {
    Beginnings.prototype.took = took;
  };
}
