/*
 * The unix link: a socket of the worker that carries frames instead of stdin and stdout.
 *
 *   none ──LINK: connected, our proof sent──► asked ──the worker's proof──► proven ──outbox empty, LINKED sent──► carrying
 *    ▲────────────────────── HELLO, the end of the stream, or anything but the worker's proof ─────────────────────────┘
 *
 * Both proofs are random bytes that came over stdin, which no tenant can read. The worker listens only while it waits for
 * this connection. init accepts HELLO and LINK only on stdin.
 */
#ifndef BERTH_LINK_H
#define BERTH_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source.h"

/* The directory of the worker's sockets. Without one init refuses every LINK. */
void link_directory(const char *path);
bool link_possible(void);

/* NULL: init was given no directory. */
const char *link_path(void);

/* LINK: connects, or reports the errno over stdout. */
void link_offer(const uint8_t *payload, size_t length);

/* Whether init may act on a frame that came over the link. Before the worker's proof it may not. */
bool link_admits(const struct frame *frame);

/* The link's frames; its descriptor is -1 without a link. */
struct source *link_source(void);

/* Where the outbox goes: the link once it carries, else `otherwise`. Called when the outbox may be empty. */
int link_output(int otherwise);

void link_close(void);

#endif
