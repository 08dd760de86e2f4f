/* Structured payloads: tag (1), length (4), value. */
#ifndef BERTH_RECORD_H
#define BERTH_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record {
    uint8_t tag;
    const uint8_t *value;
    size_t length;
};

struct record_reader {
    const uint8_t *at;
    size_t left;
    bool malformed;
};

/* False at the end, and at a record that runs past the payload: then `malformed` is set. */
bool record_next(struct record_reader *reader, struct record *out);
bool record_number(const struct record *record, uint64_t *out);

/* A writer never passes its bound: what does not fit sets `overflow` and writes nothing. */
struct record_writer {
    uint8_t *buffer;
    size_t capacity;
    size_t length;
    bool overflow;
};

void write_bytes(struct record_writer *writer, uint8_t tag, const void *value, size_t length);
/* Numbers above 2^53 - 1 are written as that. */
void write_number(struct record_writer *writer, uint8_t tag, uint64_t value);
void write_text(struct record_writer *writer, uint8_t tag, const char *text);

#endif
