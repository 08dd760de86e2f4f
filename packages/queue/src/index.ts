export { JobQueues, unfinishedKeys } from "./job-queues.ts";
export type { HeldJob } from "./job-source.ts";
export { JobSource } from "./job-source.ts";
export type { Offer } from "./offers.ts";
export { Offers, OfferTaker } from "./offers.ts";
