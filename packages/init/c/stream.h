/* Moves bytes between a channel's pipes and its frames, within the credit for output and the window for stdin. */
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

/* Whether to read output now: there is credit and room in the outbox, or the output is dropped. */
bool tap_wanted(const struct channel *channel, bool dropping);

/* Reads once, if tap_wanted. With `dropping`, output without credit is read and dropped. An orphan's output is always dropped. */
void tap_read(struct channel *channel, struct tap *tap, bool dropping);

size_t tap_waiting(const struct tap *tap);

/* Notices the end of an empty pipe without reading, for channels without credit. */
void tap_close_if_ended(struct tap *tap);

#endif
