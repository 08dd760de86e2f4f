import { fleetQueuePrefix } from "@berth/protocol";

/** Queues of BullMQ's layout. Each has the keys of `bullNames`. */
export const bullQueues = [
  {
    key: "berth:{<tenant>}:jobs",
    holds: "the sandbox's own queue. Attempts that did not succeed are under `failed`",
    ends: "entry of an ended attempt: a day later, or when a hundred newer ones are in the same list; the whole queue by the sweep after BERTH_FORGET_MS unused",
  },
  {
    key: `${fleetQueuePrefix}:offers[-<pool>][@<host>]`,
    holds:
      "sandboxes of a pool (and of one home host) that have work and no holder, at most one each. Their priority is the turn of their tenant",
    ends: "entry: when taken",
  },
  {
    key: `${fleetQueuePrefix}:schedule`,
    holds: "delayed jobs, retries and the ticks of schedules, until they are due",
    ends: "entry: when handed on",
  },
  {
    key: `${fleetQueuePrefix}:dead`,
    holds: "dead letters, as failed jobs",
    ends: "entry: after seven days, or when 100,000 are newer; when re-driven",
  },
] as const;

/** What the keys of such a queue end with, behind the queue's name. */
export const bullNames = {
  "<entry>": { type: "hash", holds: "one attempt, offer, tick or letter" },
  "<entry>:lock": { type: "string", holds: "token of the worker process that has the entry; expires" },
  "<entry>:logs": { type: "list", holds: "lines that were added to the entry" },
  wait: { type: "list", holds: "entries that wait without a priority, the last added first" },
  paused: { type: "list", holds: "entries of a queue that was paused in a dashboard" },
  active: { type: "list", holds: "entries that were taken" },
  prioritized: { type: "sorted set", holds: "entries that wait, by priority and when they were added" },
  delayed: { type: "sorted set", holds: "entries by when they are due" },
  completed: { type: "sorted set", holds: "entries that succeeded, by when" },
  failed: { type: "sorted set", holds: "entries that ended in any other way, by when" },
  pc: { type: "string", holds: "count of entries with a priority" },
  id: { type: "string", holds: "count of entries without an id of their own" },
  marker: { type: "sorted set", holds: "wakes a worker process that waits" },
  meta: { type: "hash", holds: "BullMQ's settings of the queue" },
  events: { type: "stream", holds: "what happened, for dashboards; trimmed" },
  stalled: { type: "set", holds: "entries whose worker process may be dead" },
  "stalled-check": { type: "string", holds: "when BullMQ last checked those; expires" },
} as const;

export const entryFields = {
  name: "kind of the job, `offer`, `tick`, or why the letter is dead",
  data: "the job, the offer or the letter, as JSON",
  opts: "options of BullMQ, as JSON",
  timestamp: "when it was made, in ms",
  delay: "ms from then until it is due",
  priority: "lower goes first; 0 is none",
  processedOn: "when it was taken, in ms",
  finishedOn: "when it ended, in ms",
  returnvalue: "its result, as Bull Board shows it",
  failedReason: "why it did not succeed",
  stacktrace: "the same, in BullMQ's form",
  atm: "attempts made",
  ats: "attempts started",
  stc: "how often its worker process was found dead",
  ended: "how that attempt of a job ended, or `retrying`",
  confirmed:
    "written once more after the entry was added: replicas that acknowledge this write have the entry",
} as const;
