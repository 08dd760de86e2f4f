/**
 * How long a holder goes on while Redis refuses all writes, for example because its disk is full. No other worker takes the lease before
 * that time is over, or before Redis has accepted writes for a lease's length.
 */
export const writesRefusedMs = 120_000;
