/** Heartbeat interval. The heartbeat is stored with Redis' clock, so machines' clocks play no part. */
export const heartbeatMs = 2_000;
/** A worker counts as gone after three missed heartbeats. */
export const workerGoneMs = 3 * heartbeatMs;
