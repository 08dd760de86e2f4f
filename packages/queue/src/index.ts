export { acceptJob, defaultWaitingLimits } from "./acceptance.ts";
export { forgetIdleQueues } from "./idle-queues.ts";
export type { StagedPayload } from "./job-queues.ts";
export { JobQueues, jobIdOf, unfinishedKeys } from "./job-queues.ts";
export type { HeldJob } from "./job-source.ts";
export { JobSource } from "./job-source.ts";
export type { Offer, OfferPlace } from "./offers.ts";
export { Offers, OfferTaker, offerQueueName } from "./offers.ts";
