/* A stream of frames from the worker. */
#ifndef BERTH_SOURCE_H
#define BERTH_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"

enum origin { FROM_STDIN, FROM_LINK };

struct source {
    int fd; /* -1: none */
    enum origin origin;
    struct decoder decoder;
    bool frames_left; /* some frames are not yet decoded, because the outbox is full */
};

/* False without memory. The descriptor is then still the caller's. */
bool source_begin(struct source *source, int fd);

/* Closes the descriptor and drops its bytes. Keeps the buffer for the next descriptor. */
void source_end(struct source *source);

enum source_state {
    SOURCE_OPEN,
    SOURCE_ENDED, /* all writers have closed it */
};
enum source_state source_read(struct source *source, uint64_t now);

/* Handles the received frames, as far as the outbox has room for answers. */
void source_take_frames(struct source *source, uint64_t now);

#endif
