/* Bytes between a channel's pipes and its frames: credit outward, the window inward. */
#ifndef BERTH_STREAM_H
#define BERTH_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel.h"

/* False when the worker sent more than the window allows, or memory for the window is not to be had. */
bool feed_push(struct channel *channel, const uint8_t *bytes, size_t length);
void feed_end(struct channel *channel);
void feed_write(struct channel *channel);
bool feed_wants_write(const struct channel *channel);

/* Output is wanted now: there is credit (or no worker to keep it for) and room toward the worker. */
bool tap_wanted(const struct channel *channel, bool dropping);

/* Reads once, if wanted. With `dropping`, what has no credit is read and thrown away; an orphan's output always is. */
void tap_read(struct channel *channel, struct tap *tap, bool dropping);

size_t tap_waiting(const struct tap *tap);

/* Sees the end of an empty pipe without reading, for channels that have no credit to read with. */
void tap_close_if_ended(struct tap *tap);

#endif
