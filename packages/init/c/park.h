/*
 * Parking: the holder gives the sandbox up, and its container stays for the next one.
 *
 *   none ──PARK: everything is killed──► emptying ──nothing but init is alive──► parked ──HELLO──► none
 *                                           └──something would not die in time: FAIL. Nothing starts until a HELLO
 *
 * DONE on PARK's channel confirms that no thread of any other process is left. From then on no watchdog runs, because there is nothing to
 * kill, and nothing starts. Late frames of the holder that gave the sandbox up, PINGs too, have no effect. A HELLO ends the state.
 */
#ifndef BERTH_PARK_H
#define BERTH_PARK_H

#include <stdbool.h>
#include <stdint.h>

/* False when the sandbox is parked or emptying already. */
bool park_begin(uint32_t channel, uint64_t now);
void park_step(uint64_t now);
uint64_t park_due(void);

/* A HELLO came. */
void park_over(void);

/* Whether init refuses requests, because the sandbox is parked or emptying. */
bool park_refuses(void);

#endif
