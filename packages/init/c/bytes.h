/* Big-endian integers in byte buffers. */
#ifndef BERTH_BYTES_H
#define BERTH_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline void put_u16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static inline void put_u32(uint8_t *at, uint32_t value)
{
    put_u16(at, value >> 16);
    put_u16(at + 2, value & 0xFFFFu);
}

static inline void put_u64(uint8_t *at, uint64_t value)
{
    put_u32(at, (uint32_t)(value >> 32));
    put_u32(at + 4, (uint32_t)value);
}

static inline uint32_t get_u16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static inline uint32_t get_u32(const uint8_t *at)
{
    return get_u16(at) << 16 | get_u16(at + 2);
}

static inline uint64_t get_u64(const uint8_t *at)
{
    return (uint64_t)get_u32(at) << 32 | get_u32(at + 4);
}

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
