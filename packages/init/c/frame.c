#include "frame.h"

#include <string.h>

#include "bytes.h"

size_t decoder_room(struct decoder *decoder, uint8_t **at)
{
    if (decoder->head == decoder->tail) {
        decoder->head = decoder->tail = 0;
    } else if (DECODER_BYTES - decoder->tail < FRAME_MAX / 2) {
        memmove(decoder->buffer, decoder->buffer + decoder->head, decoder->tail - decoder->head);
        decoder->tail -= decoder->head;
        decoder->head = 0;
    }
    *at = decoder->buffer + decoder->tail;
    return DECODER_BYTES - decoder->tail;
}

void decoder_filled(struct decoder *decoder, size_t bytes)
{
    decoder->tail += bytes;
}

/* Whether the bytes so far can still become a header. Wrong bytes are recognised early, so that the search for a header never stalls. */
static bool may_be_header(const uint8_t *at, size_t have)
{
    if (at[0] != FRAME_MAGIC >> 8)
        return false;
    if (have > 1 && at[1] != (FRAME_MAGIC & 0xFFu))
        return false;
    if (have > 2 && at[2] != FRAME_VERSION)
        return false;
    return have < FRAME_HEADER || get_u32(at + 16) <= FRAME_PAYLOAD_MAX;
}

bool decoder_next(struct decoder *decoder, struct frame *out)
{
    while (decoder->head < decoder->tail) {
        const uint8_t *at = decoder->buffer + decoder->head;
        size_t have = decoder->tail - decoder->head;
        if (at[0] == 0 || !may_be_header(at, have)) {
            decoder->head++;
            continue;
        }
        if (have < FRAME_HEADER)
            return false;
        size_t length = get_u32(at + 16);
        if (have < FRAME_HEADER + length + FRAME_TRAILER)
            return false;
        decoder->head += FRAME_HEADER + length + FRAME_TRAILER;
        if (get_u32(at + FRAME_HEADER + length) != (FRAME_TRAILER_MARK ^ (uint32_t)length))
            continue;
        out->type = at[3];
        out->channel = get_u32(at + 4);
        out->epoch = get_u64(at + 8);
        out->payload = at + FRAME_HEADER;
        out->length = length;
        return true;
    }
    return false;
}

void frame_begin(uint8_t header[FRAME_HEADER], uint8_t type, uint32_t channel, uint64_t epoch, size_t length)
{
    put_u16(header, FRAME_MAGIC);
    header[2] = FRAME_VERSION;
    header[3] = type;
    put_u32(header + 4, channel);
    put_u64(header + 8, epoch);
    put_u32(header + 16, (uint32_t)length);
}

void frame_end(uint8_t trailer[FRAME_TRAILER], size_t length)
{
    put_u32(trailer, FRAME_TRAILER_MARK ^ (uint32_t)length);
}
