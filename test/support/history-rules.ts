import type { JobResult } from "@berth/protocol";
import { type History, msOf, startsOf } from "./history.ts";
import { holdersInLedger, ledgerBreaches } from "./ledger-rules.ts";

export interface HistoryRules {
  /** On a cluster the results may have an end twice when the worker or the primary dies in between. Default: true. */
  readonly isPublishedOnce?: boolean;
}

/** Every broken invariant of a history, as a sentence. */
export function breachesOf(history: History, { isPublishedOnce = true }: HistoryRules = {}): string[] {
  return [
    ...endings(history, isPublishedOnce),
    ...epochs(history),
    ...sessionOrder(history),
    ...begunOnce(history),
    ...output(history),
    ...ledgerBreaches(history),
    ...strays(history),
  ];
}

/** Checks only the invariants that hold when Redis lost acknowledged writes. */
export function holderBreaches(history: History): string[] {
  return [...epochs(history), ...holdersInLedger(history), ...strays(history)];
}

/** Exactly one terminal record per job, last in its stream, the same in the results; then the job leaves its queue. */
function endings({ jobs, events, results, queued }: History, isPublishedOnce: boolean): string[] {
  return jobs.flatMap(({ id }) => {
    const said = events.get(id) ?? [];
    const ends = said.filter(({ type }) => type === "finished");
    const published = results.get(id) ?? [];
    const found: string[] = [];
    if (ends.length !== 1) found.push(`${id} has ${ends.length} terminal records`);
    if (ends.length > 0 && said.at(-1)?.type !== "finished")
      found.push(`${id}: ${said.at(-1)?.type} follows its terminal record`);
    if (published.length === 0 || (isPublishedOnce && published.length > 1))
      found.push(`${id} is ${published.length} times in the results`);
    else if (ends.length === 1 && published.some((end) => end !== ends[0]?.data))
      found.push(`${id} ended otherwise in the results than in its stream`);
    if (queued.has(id)) found.push(`${id} is still in its queue`);
    return found;
  });
}

/** In the streams, the epochs in which jobs of a sandbox began only grow, and each epoch has one worker. */
function epochs(history: History): string[] {
  const found: string[] = [];
  for (const [key, starts] of Map.groupBy(startsOf(history), ({ job }) => job.key)) {
    // Two entries of one millisecond have no order across streams.
    starts.sort((a, b) => a.atMs - b.atMs || a.epoch - b.epoch);
    const workers = new Map<number, string>();
    let highest = 0;
    for (const { job, epoch, worker } of starts) {
      if (epoch < highest) found.push(`${job.id} began in epoch ${epoch} of ${key}, after epoch ${highest}`);
      highest = Math.max(highest, epoch);
      const other = workers.get(epoch);
      if (other !== undefined && other !== worker)
        found.push(`epoch ${epoch} of ${key} had two workers, ${other} and ${worker}`);
      workers.set(epoch, worker);
    }
    const held = history.leases.get(key)?.epoch ?? 0;
    if (highest > held)
      found.push(`the lease of ${key} has epoch ${held}, but epoch ${highest} has run jobs`);
  }
  return found;
}

/** A job of a session begins after the end of the one enqueued before it. One that never began holds up no other. */
function sessionOrder(history: History): string[] {
  const found: string[] = [];
  const ordered = history.jobs.filter(({ unordered }) => !unordered);
  for (const session of Map.groupBy(ordered, ({ key, session }) => `${key} ${session}`).values()) {
    let before: { id: string; endMs: number } | undefined;
    for (const { id } of session) {
      const said = history.events.get(id) ?? [];
      const start = said.find(({ type }) => type === "started");
      if (!start) continue;
      if (before && msOf(start) < before.endMs) found.push(`${id} began before ${before.id} had ended`);
      const end = said.find(({ type }) => type === "finished");
      before = { id, endMs: end ? msOf(end) : Number.POSITIVE_INFINITY };
    }
  }
  return found;
}

/** A job that must not be repeated begins once. */
function begunOnce({ jobs, events }: History): string[] {
  return jobs.flatMap(({ id, repeatable }) => {
    const starts = (events.get(id) ?? []).filter(({ type }) => type === "started").length;
    return starts > 1 && !repeatable ? [`${id} must not be repeated, and began ${starts} times`] : [];
  });
}

/** The output events of a job are the output in its result: nothing is missing or doubled. */
function output({ jobs, events }: History): string[] {
  return jobs.flatMap(({ id }) => {
    const said = events.get(id) ?? [];
    const last = said.find(({ type }) => type === "finished");
    const value = last && (JSON.parse(last.data) as JobResult).value;
    if (value?.stdout === undefined || value.cutBytes) return [];
    // Of a job that ran again, only what follows its last beginning counts.
    const live = said
      .slice(said.findLastIndex(({ type }) => type === "started"))
      .filter(({ type }) => type === "stdout");
    const text = live.map(({ data }) => data).join("");
    return text === value.stdout
      ? []
      : [`${id} said ${JSON.stringify(text)} live, ${JSON.stringify(value.stdout)} at its end`];
  });
}

/** No container without a live lease of the same worker. An adopted one has the epoch of an earlier lease on its label. */
function strays({ containers, leases }: History): string[] {
  return containers.flatMap(({ id, key, worker, epoch }) => {
    const lease = leases.get(key);
    const name = `container ${id.slice(0, 12)} of ${key}`;
    if (!lease?.live) return [`${name} has no lease`];
    if (lease.worker !== worker) return [`${name} is ${worker}'s, but the lease is ${lease.worker}'s`];
    return epoch > lease.epoch ? [`${name} is of epoch ${epoch}, ahead of the lease's ${lease.epoch}`] : [];
  });
}
