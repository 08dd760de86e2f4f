#include "parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "protocol.h"

enum { CAPACITY = REQUEST_MAX + FRAME_PAYLOAD_MAX + 1 };

static uint8_t *buffer;
static size_t used;
static uint32_t owner; /* 0: none */
static uint32_t spoiled[CHANNELS_MAX];
static size_t spoiled_next;

bool parts_open(void)
{
    void *at = mmap(NULL, CAPACITY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return false;
    buffer = at;
    return true;
}

void parts_forget(void)
{
    owner = 0;
    used = 0;
    memset(spoiled, 0, sizeof spoiled);
}

static bool is_spoiled(uint32_t channel, bool forgive)
{
    for (size_t i = 0; i < CHANNELS_MAX; i++) {
        if (spoiled[i] == channel) {
            if (forgive)
                spoiled[i] = 0;
            return true;
        }
    }
    return false;
}

static void spoil(uint32_t channel)
{
    if (!is_spoiled(channel, false))
        spoiled[spoiled_next++ % CHANNELS_MAX] = channel;
}

void parts_add(uint32_t channel, const uint8_t *bytes, size_t length)
{
    if (channel == 0 || is_spoiled(channel, false))
        return;
    if (owner != 0 && owner != channel) {
        spoil(owner);
        spoil(channel);
        owner = 0;
        used = 0;
        return;
    }
    if (length > REQUEST_MAX - used) {
        spoil(channel);
        owner = 0;
        used = 0;
        return;
    }
    owner = channel;
    memcpy(buffer + used, bytes, length);
    used += length;
}

uint8_t *parts_finish(uint32_t channel, const uint8_t *bytes, size_t length, size_t *whole)
{
    if (is_spoiled(channel, true))
        return NULL;
    size_t before = 0;
    if (owner == channel)
        before = used;
    else if (owner != 0) {
        /* The buffer holds parts of another channel's request: put this request behind them. */
        if (length >= CAPACITY - used)
            return NULL;
        memcpy(buffer + used, bytes, length);
        *whole = length;
        return buffer + used;
    }
    memcpy(buffer + before, bytes, length);
    *whole = before + length;
    owner = 0;
    used = 0;
    return buffer;
}

void parts_served(void)
{
    static const size_t small = 4 * FRAME_PAYLOAD_MAX;
    if (owner == 0)
        madvise(buffer + small, CAPACITY - small, MADV_DONTNEED);
}
