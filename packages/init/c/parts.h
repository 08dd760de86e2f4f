/*
 * A request that does not fit one frame: PART, PART, …, then EXEC or FILE with the rest.
 *
 * One channel at a time. Parts that were given up (too many bytes, or another channel's in between) leave their channel
 * spoiled, so that its final frame is refused and never taken for a whole request.
 */
#ifndef BERTH_PARTS_H
#define BERTH_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool parts_open(void);
void parts_forget(void);
void parts_add(uint32_t channel, const uint8_t *bytes, size_t length);

/* The whole payload with the final frame's bytes, with one writable byte behind it; NULL when the channel is spoiled. Valid
 * until the next call of this module. */
uint8_t *parts_finish(uint32_t channel, const uint8_t *bytes, size_t length, size_t *whole);

/* Gives the memory back after the request has been served. */
void parts_served(void);

#endif
