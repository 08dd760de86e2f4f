import { isSuccess, type JobResult } from "@berth/protocol";
import { type History, type HistoryJob, startsOf } from "./history.ts";
import type { LedgerLine } from "./ledger.ts";

/** Compares the records that commands wrote in their workspaces with the streams. */
export function ledgerBreaches(history: History): string[] {
  const found: string[] = [];
  const marked = history.jobs.filter(({ mark }) => mark !== undefined);
  for (const [key, jobs] of Map.groupBy(marked, (job) => job.key)) {
    const lines = history.ledgers.get(key) ?? [];
    found.push(
      ...runs(history, jobs, lines),
      ...epochsInLedger(history, key, jobs, lines),
      ...sessionsInLedger(jobs, lines),
    );
  }
  return found;
}

/** For a Redis that may have lost what it acknowledged: checks only that no two workers had one sandbox. */
export function holdersInLedger(history: History): string[] {
  const marked = history.jobs.filter(({ mark }) => mark !== undefined);
  return [...Map.groupBy(marked, ({ key }) => key)].flatMap(([key, jobs]) => {
    const lines = history.ledgers.get(key) ?? [];
    const times = Map.groupBy(lines, ({ what, mark }) => `${what} ${mark}`);
    // A job ran again because Redis lost its first run, which is in no stream then.
    const once = jobs.filter(({ mark }) => (times.get(`began ${mark}`)?.length ?? 0) <= 1);
    return epochsInLedger(history, key, once, lines);
  });
}

/** No job that must not be repeated ran twice, every job that succeeded ran, and no job ran that never began. */
function runs({ events }: History, jobs: readonly HistoryJob[], lines: readonly LedgerLine[]): string[] {
  const began = Map.groupBy(lines, ({ what, mark }) => `${what} ${mark}`);
  return jobs.flatMap(({ id, mark, repeatable }) => {
    const times = began.get(`began ${mark}`)?.length ?? 0;
    const ended = began.get(`ended ${mark}`)?.length ?? 0;
    const said = events.get(id) ?? [];
    const last = said.find(({ type }) => type === "finished");
    const outcome = last && (JSON.parse(last.data) as JobResult).outcome;
    const found: string[] = [];
    if (times > 1 && !repeatable) found.push(`${id} must not be repeated, and ran ${times} times`);
    if (times > 0 && !said.some(({ type }) => type === "started"))
      found.push(`${id} ran, and nothing says that it began`);
    if (times > 0 && outcome?.kind === "refused") found.push(`${id} was refused, and ran`);
    if (outcome && isSuccess(outcome) && ended === 0)
      found.push(`${id} succeeded, and its command never came to its end`);
    return found;
  });
}

/** No command of an earlier epoch writes after one of a later epoch: a holder that lost the lease has no process left. */
function epochsInLedger(
  history: History,
  key: string,
  jobs: readonly HistoryJob[],
  lines: readonly LedgerLine[],
): string[] {
  const idOf = new Map(jobs.map(({ id, mark }) => [mark, id]));
  const epochsOf = Map.groupBy(startsOf(history), ({ job }) => job.id);
  const found: string[] = [];
  let newest = { mark: "", epoch: 0 };
  for (const { mark } of lines) {
    const epochs = (epochsOf.get(idOf.get(mark) ?? "") ?? []).map(({ epoch }) => epoch);
    if (epochs.length === 0) continue;
    // A repeated job may have written in any of its epochs: the latest excuses it, the earliest accuses others.
    if (Math.max(...epochs) < newest.epoch)
      found.push(
        `${mark} of ${key} wrote in epoch ${Math.max(...epochs)}, after ${newest.mark} of epoch ${newest.epoch}`,
      );
    if (Math.min(...epochs) > newest.epoch) newest = { mark, epoch: Math.min(...epochs) };
  }
  return found;
}

/** Commands of a session began in the order in which they were enqueued, and none before the one before it ended. */
function sessionsInLedger(jobs: readonly HistoryJob[], lines: readonly LedgerLine[]): string[] {
  const places = new Map<string, { readonly first: number; last: number }>();
  lines.forEach(({ mark }, index) => {
    const place = places.get(mark);
    if (place) place.last = index;
    else places.set(mark, { first: index, last: index });
  });
  const found: string[] = [];
  const ordered = jobs.filter(({ unordered }) => !unordered);
  for (const session of Map.groupBy(ordered, (job) => job.session).values()) {
    let before: { mark: string; last: number } | undefined;
    for (const { mark = "" } of session) {
      const place = places.get(mark);
      if (!place) continue;
      if (before && place.first < before.last) found.push(`${mark} ran before ${before.mark} had ended`);
      before = { mark, last: place.last };
    }
  }
  return found;
}
