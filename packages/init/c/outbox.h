/*
 * The frames that wait to be sent to the worker, in one flat buffer of OUTBOX_BYTES.
 *
 * init reads command output only while less than OUTBOX_GATE waits here, and requests only while less than OUTBOX_CONTROL_GATE does. A
 * single step adds far less than the rest of the buffer (one frame per open channel, one reply per request, HELLO_ACK), so a frame always
 * fits.
 */
#ifndef BERTH_OUTBOX_H
#define BERTH_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OUTBOX_BYTES = 8 * 1024 * 1024,
    OUTBOX_GATE = 256 * 1024,
    OUTBOX_CONTROL_GATE = 1024 * 1024,
};

bool outbox_open(void);
size_t outbox_waiting(void);
void outbox_set_epoch(uint64_t epoch);
uint64_t outbox_epoch(void);
/* Drops all waiting frames: their reader is gone for good. */
void outbox_forget(void);

void outbox_send(uint8_t type, uint32_t channel, const void *payload, size_t length);
void outbox_send_number(uint8_t type, uint32_t channel, uint8_t tag, uint64_t value);

/* Room for a payload of up to `most` bytes to be read straight into place; commit sends it, 0 bytes send nothing. */
uint8_t *outbox_reserve(size_t most);
void outbox_commit(uint8_t type, uint32_t channel, size_t length);

enum outbox_state {
    OUTBOX_EMPTY,
    OUTBOX_FULL,   /* the descriptor takes no more now */
    OUTBOX_BROKEN, /* the reader is gone; all frames are kept, as a later try may succeed */
};
enum outbox_state outbox_flush(int fd);

#endif
