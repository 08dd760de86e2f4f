/*
 * A request that does not fit one frame: PART, PART, …, then EXEC or FILE with the rest.
 *
 * Only one channel at a time can send parts. If they are too many bytes, or another channel's come in between, the channel is spoiled: its
 * final frame is refused, and never taken for a whole request.
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

/* Returns the memory to the kernel after the request was served. */
void parts_served(void);

#endif
