/*
 * The worker is expected to speak at least every leaseMs. When it does not, everything in the sandbox but init is killed,
 * without having to reach anybody: this is how a sandbox stops working for a worker that lost its lease.
 */
#ifndef BERTH_WATCHDOG_H
#define BERTH_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

void watchdog_begin(uint64_t now);
void watchdog_hello(uint64_t lease_ms, uint64_t now);
void watchdog_heard(uint64_t now);

/* Whether it fired since this was last asked. */
bool watchdog_take_fired(void);

/* True when init should exit: no stream, and nobody said HELLO for ten more lease lengths. */
bool watchdog_step(bool stream_ended, uint64_t now);
uint64_t watchdog_next(bool stream_ended);

#endif
