/*
 * Enforces the worker's lease. HELLO and PING carry what is left of it; no other frame extends it. When it is over, init kills everything in
 * the sandbox, without having to reach the worker or Redis, and starts nothing until the next HELLO or PING. So a sandbox stops working for
 * a worker that lost its lease.
 */
#ifndef BERTH_WATCHDOG_H
#define BERTH_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void watchdog_begin(uint64_t now);
void watchdog_hello(uint64_t lease_ms, uint64_t now);
/* A PING without a number extends the lease by the length that HELLO named. */
void watchdog_ping(const uint8_t *payload, size_t length, uint64_t now);

/* The watchdog fired, and no HELLO or PING came since. */
bool watchdog_starved(void);

/* Whether it fired since this was last asked. */
bool watchdog_take_fired(void);

/* The sandbox is parked: no process is left to kill, and its holder sends no more frames. */
void watchdog_park(uint64_t now);

/* True when init should exit: its stream has ended, and no HELLO came for ten more leases; or the container waits for its sandbox, and the
 * worker that could assign it is gone. */
bool watchdog_step(bool stream_ended, uint64_t now);
uint64_t watchdog_next(bool stream_ended);

#endif
