#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "control.h"
#include "outbox.h"

bool source_begin(struct source *source, int fd)
{
    if (source->decoder.buffer == NULL)
        source->decoder.buffer = malloc(DECODER_BYTES);
    if (source->decoder.buffer == NULL)
        return false;
    source->fd = fd;
    return true;
}

void source_end(struct source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
    source->decoder.head = source->decoder.tail = 0;
    source->frames_left = false;
}

void source_take_frames(struct source *source, uint64_t now)
{
    struct frame frame;
    source->frames_left = true;
    while (outbox_waiting() < OUTBOX_CONTROL_GATE) {
        if (!decoder_next(&source->decoder, &frame)) {
            source->frames_left = false;
            return;
        }
        control_frame(&frame, source->origin, now);
    }
}

enum source_state source_read(struct source *source, uint64_t now)
{
    uint8_t *at;
    size_t room = decoder_room(&source->decoder, &at);
    ssize_t got = read(source->fd, at, room);
    if (got > 0) {
        decoder_filled(&source->decoder, (size_t)got);
        source_take_frames(source, now);
        return SOURCE_OPEN;
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? SOURCE_OPEN : SOURCE_ENDED;
}
