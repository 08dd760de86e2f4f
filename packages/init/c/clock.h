/* Monotonic time in microseconds: changing the system clock moves no deadline. */
#ifndef BERTH_CLOCK_H
#define BERTH_CLOCK_H

#include <stdint.h>
#include <time.h>

#define MS 1000ull
#define SECOND 1000000ull
#define NEVER UINT64_MAX

static inline uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec / 1000;
}

/* The wire's milliseconds are any 64 bits; a deadline past the clock's range is never. */
static inline uint64_t deadline_after(uint64_t now, uint64_t ms)
{
    return ms > (NEVER - now) / MS ? NEVER : now + ms * MS;
}

#endif
