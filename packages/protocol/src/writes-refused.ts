/**
 * A Redis that refuses all writes (its disk is full, say) gives no lease to anybody. A holder goes on for this long meanwhile; nobody
 * takes its lease before that is over or Redis has written again for a lease's length.
 */
export const writesRefusedMs = 120_000;
