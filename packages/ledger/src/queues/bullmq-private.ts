/**
 * Everything of BullMQ that we use beyond its documentation, and the files that depend on it: a new version may change any of it.
 * `test/bullmq-private.test.ts` has a contract test for each against the pinned version, and fails to compile without one. The
 * names of a sandbox queue's keys and the fields of its entries are in `queue-layout.ts`.
 */
export const bullmqPrivate = {
  keyNames:
    "the names that a queue's own keys end with. `forget.lua` removes them, and `chosenJobId` of protocol forbids them as ids, since entries have such keys too",
  entryKey:
    "an entry's key is PREFIX:QUEUE:ID. `schedule.ts` looks there whether an attempt is scheduled, and `confirm.lua` writes there",
  foreignField: "a field of an entry that BullMQ does not know is left alone and does no harm: `confirmed`",
  logsAndLock: "an entry's lines are in ID:logs and its lock in ID:lock. `forget.lua` removes both",
  waitList:
    "QUEUE:wait is a list whose last member is taken first. `offers.ts` finds an offer's place in it by LPOS",
  takeByHand:
    "getNextJob takes an entry without a processor, moveToWait gives it back, moveToCompleted removes it. `offers.ts` takes offers so",
  waitForJob:
    "a worker waits by its backend's waitForJob, a BZPOPMIN of QUEUE:marker, and takes an entry after each wait but one that failed while it closes. `marker-waits.ts` waits for all queues in one call",
  readOnlyQueue:
    "a queue that is opened with skipMetasUpdate writes no key. `board-queue.ts` and the dashboard open queues so",
  priorityScore:
    "a score of QUEUE:prioritized is priority × 2^32 + a count from QUEUE:pc. `submit.lua` makes it, and `QueuePeek` reads its order",
  failedScore:
    "a score of QUEUE:failed is when the entry failed, in ms. Dead letters are listed and expired by it",
  failureTrace:
    "attemptsMade and stacktrace of an entry that failed remain when a dashboard retries it. `dead-letters-worker.ts` recognises a new letter by their absence",
} as const;
