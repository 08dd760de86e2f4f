/*
 * Decodes frames from a byte stream that may begin in the middle of one.
 *
 * The decoder has no mode: at every position it skips zeros, skips a byte that cannot start a header, waits for more
 * bytes, or takes a whole frame. A frame with a wrong trailer is dropped whole. So 65,560 zeros flush a frame that a dead worker left
 * half sent.
 */
#ifndef BERTH_FRAME_H
#define BERTH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

struct frame {
    uint8_t type;
    uint32_t channel;
    uint64_t epoch;
    const uint8_t *payload;
    size_t length;
};

/* Room for two frames, so that a frame can be completed without moving bytes on every read. */
enum { DECODER_BYTES = 2 * FRAME_MAX };

struct decoder {
    uint8_t *buffer;
    size_t head;
    size_t tail;
};

/* Room to read into; never zero while decoder_next has returned false. */
size_t decoder_room(struct decoder *decoder, uint8_t **at);
void decoder_filled(struct decoder *decoder, size_t bytes);

/* The frame's payload stays valid until the next decoder_room. */
bool decoder_next(struct decoder *decoder, struct frame *out);

void frame_begin(uint8_t header[FRAME_HEADER], uint8_t type, uint32_t channel, uint64_t epoch, size_t length);
void frame_end(uint8_t trailer[FRAME_TRAILER], size_t length);

#endif
