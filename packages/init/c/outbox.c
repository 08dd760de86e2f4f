#include "outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "frame.h"
#include "record.h"

static uint8_t *buffer;
static size_t head, tail, peak;
static uint64_t highest_epoch;

bool outbox_open(void)
{
    /* Mapped, so that untouched pages cost nothing, and not copied into children. */
    void *at = mmap(NULL, OUTBOX_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return false;
    madvise(at, OUTBOX_BYTES, MADV_DONTFORK);
    buffer = at;
    return true;
}

size_t outbox_waiting(void)
{
    return tail - head;
}

void outbox_set_epoch(uint64_t epoch)
{
    highest_epoch = epoch;
}

uint64_t outbox_epoch(void)
{
    return highest_epoch;
}

void outbox_forget(void)
{
    head = tail = 0;
}

uint8_t *outbox_reserve(size_t most)
{
    size_t need = FRAME_HEADER + most + FRAME_TRAILER;
    /* Move only if that frees more bytes than it moves: on average each byte is then moved at most once. */
    if (tail + need > OUTBOX_CONTROL_GATE && head > tail - head) {
        memmove(buffer, buffer + head, tail - head);
        tail -= head;
        head = 0;
    }
    if (tail + need > OUTBOX_BYTES)
        abort(); /* the bounds in outbox.h are wrong */
    return buffer + tail + FRAME_HEADER;
}

void outbox_commit(uint8_t type, uint32_t channel, size_t length)
{
    if (length == 0)
        return;
    frame_begin(buffer + tail, type, channel, highest_epoch, length);
    frame_end(buffer + tail + FRAME_HEADER + length, length);
    tail += FRAME_HEADER + length + FRAME_TRAILER;
    if (tail > peak)
        peak = tail;
}

void outbox_send(uint8_t type, uint32_t channel, const void *payload, size_t length)
{
    uint8_t *at = outbox_reserve(length);
    if (length > 0)
        memcpy(at, payload, length);
    frame_begin(at - FRAME_HEADER, type, channel, highest_epoch, length);
    frame_end(at + length, length);
    tail += FRAME_HEADER + length + FRAME_TRAILER;
    if (tail > peak)
        peak = tail;
}

void outbox_send_number(uint8_t type, uint32_t channel, uint8_t tag, uint64_t value)
{
    uint8_t raw[13];
    struct record_writer writer = {.buffer = raw, .capacity = sizeof raw};
    write_number(&writer, tag, value);
    outbox_send(type, channel, raw, writer.length);
}

enum outbox_state outbox_flush(int fd)
{
    while (head < tail) {
        ssize_t wrote = write(fd, buffer + head, tail - head);
        if (wrote > 0)
            head += (size_t)wrote;
        else if (wrote < 0 && errno == EINTR)
            continue;
        else
            return wrote < 0 && errno != EAGAIN ? OUTBOX_BROKEN : OUTBOX_FULL;
    }
    head = tail = 0;
    if (peak > 2 * OUTBOX_CONTROL_GATE) {
        madvise(buffer, OUTBOX_BYTES, MADV_DONTNEED);
        peak = 0;
    }
    return OUTBOX_EMPTY;
}
