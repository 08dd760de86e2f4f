/**
 * A Redis that refuses all writes (for example because its disk is full) grants no lease. A holder continues for this long meanwhile. No
 * other worker takes its lease before that is over, or before Redis has accepted writes for a lease's length.
 */
export const writesRefusedMs = 120_000;
