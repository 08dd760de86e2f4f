/** How often a worker renews its record. Scored by Redis' clock, so that no machine's own clock plays a part. */
export const heartbeatMs = 2_000;
/** A worker is taken for gone when Redis has not heard of it for this long: three heartbeats. */
export const workerGoneMs = 3 * heartbeatMs;
