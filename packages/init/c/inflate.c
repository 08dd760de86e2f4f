#include "inflate.h"

#include <string.h>

enum {
    WINDOW = 32768,
    FRESH = 65536,
    CODE_BITS = 15,
    LITERALS = 288,
    DISTANCES = 32,
    LENGTH_CODES = 19,
    END_OF_BLOCK = 256,
};

/* By the next CODE_BITS bits: the symbol, and how many of the bits are its code; 0 if no symbol has that code. */
struct code {
    struct {
        uint16_t symbol;
        uint8_t bits;
    } at[1 << CODE_BITS];
};

struct state {
    struct gunzip *gunzip;
    const uint8_t *at;
    size_t left;
    uint64_t bits;
    unsigned bit_count;
    bool cut_short;
    uint8_t *out; /* WINDOW bytes that were emitted before, then new bytes */
    size_t used;  /* bytes of `out` */
    size_t known; /* how far back a copy may reach, up to WINDOW */
    uint32_t crc, length;
};

static struct code literals, distances;
static uint8_t out_buffer[WINDOW + FRESH];
static uint32_t crc_table[256];

static bool damaged(struct state *state, const char *problem)
{
    state->gunzip->problem = state->cut_short ? "it ends in the middle" : problem;
    return false;
}

static bool next_byte(struct state *state, uint8_t *out)
{
    if (state->left == 0 && (state->left = state->gunzip->more(state->gunzip->context, &state->at)) == 0) {
        state->cut_short = true;
        return false;
    }
    state->left--;
    *out = *state->at++;
    return true;
}

/* The checksum comes last, so the stream always goes on after a code. Missing bits mean that it was cut. */
static bool need(struct state *state, unsigned count)
{
    while (state->bit_count < count) {
        uint8_t byte;
        if (!next_byte(state, &byte))
            return false;
        state->bits |= (uint64_t)byte << state->bit_count;
        state->bit_count += 8;
    }
    return true;
}

static uint32_t take(struct state *state, unsigned count)
{
    uint32_t value = (uint32_t)(state->bits & ((UINT64_C(1) << count) - 1));
    state->bits >>= count;
    state->bit_count -= count;
    return value;
}

static bool read_bits(struct state *state, unsigned count, uint32_t *out)
{
    if (!need(state, count))
        return false;
    *out = take(state, count);
    return true;
}

static void make_crc_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = (value & 1) != 0 ? 0xEDB88320u ^ value >> 1 : value >> 1;
        crc_table[i] = value;
    }
}

/* Emits the new bytes, and keeps the last WINDOW bytes. */
static bool flush(struct state *state)
{
    const uint8_t *fresh = state->out + WINDOW;
    size_t length = state->used - WINDOW;
    uint32_t crc = ~state->crc;
    for (size_t i = 0; i < length; i++)
        crc = crc_table[(crc ^ fresh[i]) & 0xFF] ^ crc >> 8;
    state->crc = ~crc;
    state->length += (uint32_t)length;
    if (length > 0 && !state->gunzip->emit(state->gunzip->context, fresh, length))
        return false;
    memmove(state->out, state->out + length, WINDOW);
    state->used = WINDOW;
    return true;
}

static bool put(struct state *state, uint8_t byte)
{
    state->out[state->used++] = byte;
    if (state->known < WINDOW)
        state->known++;
    return state->used < WINDOW + FRESH || flush(state);
}

/* Makes canonical codes from their lengths. False when the lengths are too short for so many codes. */
static bool make_code(struct code *code, const uint8_t *lengths, size_t count)
{
    unsigned of_length[CODE_BITS + 1] = {0}, next[CODE_BITS + 2] = {0};
    for (size_t i = 0; i < count; i++)
        of_length[lengths[i]]++;
    of_length[0] = 0;
    unsigned used = 0;
    for (unsigned bits = 1; bits <= CODE_BITS; bits++) {
        next[bits + 1] = (next[bits] + of_length[bits]) << 1;
        used += of_length[bits] << (CODE_BITS - bits);
    }
    if (used > 1u << CODE_BITS)
        return false;
    if (used < 1u << CODE_BITS)
        memset(code, 0, sizeof *code);
    for (size_t i = 0; i < count; i++) {
        unsigned bits = lengths[i];
        if (bits == 0)
            continue;
        unsigned value = next[bits]++, reversed = 0;
        for (unsigned bit = 0; bit < bits; bit++)
            reversed |= (value >> bit & 1) << (bits - 1 - bit);
        for (unsigned slot = reversed; slot < 1u << CODE_BITS; slot += 1u << bits) {
            code->at[slot].symbol = (uint16_t)i;
            code->at[slot].bits = (uint8_t)bits;
        }
    }
    return true;
}

static bool read_symbol(struct state *state, const struct code *code, unsigned *out)
{
    if (!need(state, CODE_BITS))
        return false;
    size_t slot = (size_t)(state->bits & ((1u << CODE_BITS) - 1));
    if (code->at[slot].bits == 0)
        return false;
    *out = code->at[slot].symbol;
    take(state, code->at[slot].bits);
    return true;
}

static bool copy_back(struct state *state, size_t distance, size_t length)
{
    for (; length > 0; length--)
        if (!put(state, state->out[state->used - distance]))
            return false;
    return true;
}

static bool read_copy(struct state *state, unsigned symbol)
{
    static const uint16_t length_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                             31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_more[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                            2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distance_base[30] = {1,   2,   3,   4,   5,   7,    9,    13,   17,   25,
                                               33,  49,  65,  97,  129, 193,  257,  385,  513,  769,
                                               1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    static const uint8_t distance_more[30] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                              6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
    unsigned index = symbol - END_OF_BLOCK - 1, place;
    uint32_t more;
    if (index >= 29 || !read_bits(state, length_more[index], &more))
        return damaged(state, "it has a length that cannot be");
    size_t length = (size_t)length_base[index] + more;
    if (!read_symbol(state, &distances, &place) || place >= 30 || !read_bits(state, distance_more[place], &more))
        return damaged(state, "it has a distance that cannot be");
    size_t distance = (size_t)distance_base[place] + more;
    if (distance > state->known)
        return damaged(state, "it copies from before its beginning");
    return copy_back(state, distance, length);
}

static bool read_codes(struct state *state)
{
    for (;;) {
        unsigned symbol;
        if (!read_symbol(state, &literals, &symbol))
            return damaged(state, "it has a code that stands for nothing");
        if (symbol == END_OF_BLOCK)
            return true;
        if (!(symbol < END_OF_BLOCK ? put(state, (uint8_t)symbol) : read_copy(state, symbol)))
            return false;
    }
}

static bool read_stored(struct state *state)
{
    uint32_t length, check;
    take(state, state->bit_count % 8);
    if (!read_bits(state, 16, &length) || !read_bits(state, 16, &check) || (length ^ check) != 0xFFFF)
        return damaged(state, "it has a block whose length is wrong");
    for (uint32_t byte; length > 0; length--) {
        if (!read_bits(state, 8, &byte))
            return damaged(state, "");
        if (!put(state, (uint8_t)byte))
            return false;
    }
    return true;
}

static bool read_fixed(struct state *state)
{
    uint8_t lengths[LITERALS];
    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 112);
    memset(lengths + 256, 7, 24);
    memset(lengths + 280, 8, 8);
    make_code(&literals, lengths, LITERALS);
    memset(lengths, 5, DISTANCES);
    make_code(&distances, lengths, DISTANCES);
    return read_codes(state);
}

/* Reads the lengths of both codes, which are coded themselves. False when they are invalid. */
static bool read_lengths(struct state *state, uint8_t *lengths, size_t count)
{
    for (size_t at = 0; at < count;) {
        unsigned symbol;
        uint32_t times = 0;
        uint8_t value = 0;
        if (!read_symbol(state, &distances, &symbol))
            return false;
        if (symbol < 16) {
            lengths[at++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16 && at == 0)
            return false;
        if (symbol == 16)
            value = lengths[at - 1];
        static const uint8_t extra[3] = {2, 3, 7}, base[3] = {3, 3, 11};
        if (!read_bits(state, extra[symbol - 16], &times))
            return false;
        times += base[symbol - 16];
        if (times > count - at)
            return false;
        memset(lengths + at, value, times);
        at += times;
    }
    return true;
}

static bool read_dynamic(struct state *state)
{
    static const uint8_t order[LENGTH_CODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const char *problem = "it has a block whose codes are wrong";
    uint32_t literal_count, distance_count, code_count, length;
    uint8_t lengths[LITERALS + DISTANCES] = {0};
    if (!read_bits(state, 5, &literal_count) || !read_bits(state, 5, &distance_count) || !read_bits(state, 4, &code_count))
        return damaged(state, problem);
    for (uint32_t i = 0; i < code_count + 4; i++) {
        if (!read_bits(state, 3, &length))
            return damaged(state, problem);
        lengths[order[i]] = (uint8_t)length;
    }
    literal_count += 257;
    distance_count += 1;
    /* Uses the table of the distances, whose own code is made later. */
    if (literal_count > 286 || !make_code(&distances, lengths, LENGTH_CODES))
        return damaged(state, problem);
    memset(lengths, 0, sizeof lengths);
    if (!read_lengths(state, lengths, literal_count + distance_count) || lengths[END_OF_BLOCK] == 0)
        return damaged(state, problem);
    if (!make_code(&literals, lengths, literal_count) || !make_code(&distances, lengths + literal_count, distance_count))
        return damaged(state, problem);
    return read_codes(state);
}

static bool skip_text(struct state *state)
{
    for (uint32_t byte = 1; byte != 0;)
        if (!read_bits(state, 8, &byte))
            return false;
    return true;
}

static bool skip_bytes(struct state *state, uint32_t count)
{
    for (uint32_t byte; count > 0; count--)
        if (!read_bits(state, 8, &byte))
            return false;
    return true;
}

/* Behind the magic number. */
static bool read_header(struct state *state)
{
    enum { HEADER_SUM = 2, EXTRA = 4, NAME = 8, COMMENT = 16, RESERVED = 0xE0 };
    uint32_t method, flags, length;
    if (!read_bits(state, 8, &method) || !read_bits(state, 8, &flags) || !skip_bytes(state, 6))
        return false;
    if (method != 8 || (flags & RESERVED) != 0)
        return false;
    if ((flags & EXTRA) != 0 && (!read_bits(state, 16, &length) || !skip_bytes(state, length)))
        return false;
    if ((flags & NAME) != 0 && !skip_text(state))
        return false;
    if ((flags & COMMENT) != 0 && !skip_text(state))
        return false;
    return (flags & HEADER_SUM) == 0 || skip_bytes(state, 2);
}

static bool read_blocks(struct state *state)
{
    for (uint32_t last = 0, kind; last == 0;) {
        if (!read_bits(state, 1, &last) || !read_bits(state, 2, &kind))
            return damaged(state, "");
        bool good = false;
        switch (kind) {
        case 0: good = read_stored(state); break;
        case 1: good = read_fixed(state); break;
        case 2: good = read_dynamic(state); break;
        default: return damaged(state, "it has a block of no known kind");
        }
        if (!good)
            return false;
    }
    return flush(state);
}

static bool read_member(struct state *state)
{
    uint32_t crc, length;
    if (!read_header(state))
        return damaged(state, "its gzip header is wrong");
    state->known = 0;
    state->crc = state->length = 0;
    if (!read_blocks(state))
        return false;
    take(state, state->bit_count % 8);
    if (!read_bits(state, 32, &crc) || !read_bits(state, 32, &length))
        return damaged(state, "");
    return (crc == state->crc && length == state->length) || damaged(state, "its sum is wrong");
}

bool gunzip_run(struct gunzip *gunzip)
{
    struct state state = {.gunzip = gunzip, .out = out_buffer, .used = WINDOW};
    uint32_t magic;
    gunzip->problem = NULL;
    make_crc_table();
    for (bool first = true;; first = false) {
        bool found = read_bits(&state, 16, &magic) && magic == 0x8B1F;
        if (!found)
            return !first || damaged(&state, "it is not in gzip");
        if (!read_member(&state))
            return false;
    }
}
