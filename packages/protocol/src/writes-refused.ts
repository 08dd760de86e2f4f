/**
 * A Redis that refuses all writes (its disk is full, say) grants no lease. A holder goes on for this long meanwhile; no other
 * worker takes its lease before that is over or Redis has written again for a lease's length.
 */
export const writesRefusedMs = 120_000;
