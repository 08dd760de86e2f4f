/*
 * The worker says how long it may still act: HELLO and PING carry what is left of its lease, and nothing else it sends makes that
 * longer. When it is over, everything in the sandbox but init is killed, without having to reach anybody, and nothing starts until
 * the next HELLO or PING: this is how a sandbox stops working for a worker that lost its lease.
 */
#ifndef BERTH_WATCHDOG_H
#define BERTH_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void watchdog_begin(uint64_t now);
void watchdog_hello(uint64_t lease_ms, uint64_t now);
/* Without a number in it, the PING is worth the HELLO's lease. */
void watchdog_ping(const uint8_t *payload, size_t length, uint64_t now);

/* It fired, and the worker has not been heard of since. */
bool watchdog_starved(void);

/* Whether it fired since this was last asked. */
bool watchdog_take_fired(void);

/* The sandbox is parked: nothing is left to kill, and the worker that held it has said its last. */
void watchdog_park(uint64_t now);

/* True when init should exit: no stream, and no HELLO for ten more lease lengths; or no worker is there that could assign the
 * container that waits for its sandbox. */
bool watchdog_step(bool stream_ended, uint64_t now);
uint64_t watchdog_next(bool stream_ended);

#endif
