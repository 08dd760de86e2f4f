/*
 * The way out of a sandbox without a network. A child of init listens on 127.0.0.1, and copies each connection's bytes to a unix socket of
 * the worker in the link directory, and back. Only the worker interprets them.
 *
 *   none ──FORWARD──▶ running ──the tenant killed it──▶ due ──100 ms──▶ running
 *                        └──PARK──▶ none
 *
 * init keeps the listening socket, so no process of the tenant can take the port between two children.
 */
#ifndef BERTH_FORWARD_H
#define BERTH_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Handles FORWARD, and answers with FORWARDED. For the same port again, from the next worker, it only tries the socket. */
void forward_request(const uint8_t *payload, size_t length);

bool forward_knows(pid_t pid);
void forward_reaped(uint64_t now);
/* The child is about to be killed. init starts no new one until the next FORWARD. */
void forward_stop(void);

void forward_step(uint64_t now);
uint64_t forward_due(void);

#endif
