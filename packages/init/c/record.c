#include "record.h"

#include <string.h>

#include "bytes.h"

enum { RECORD_HEADER = 5 };

bool record_next(struct record_reader *reader, struct record *out)
{
    if (reader->left == 0)
        return false;
    if (reader->left < RECORD_HEADER || get_u32(reader->at + 1) > reader->left - RECORD_HEADER) {
        reader->malformed = true;
        return false;
    }
    out->tag = reader->at[0];
    out->length = get_u32(reader->at + 1);
    out->value = reader->at + RECORD_HEADER;
    reader->at += RECORD_HEADER + out->length;
    reader->left -= RECORD_HEADER + out->length;
    return true;
}

bool record_number(const struct record *record, uint64_t *out)
{
    if (record->length != 8)
        return false;
    *out = get_u64(record->value);
    return true;
}

void write_bytes(struct record_writer *writer, uint8_t tag, const void *value, size_t length)
{
    if (writer->overflow || length > writer->capacity - writer->length ||
        writer->capacity - writer->length - length < RECORD_HEADER) {
        writer->overflow = true;
        return;
    }
    uint8_t *at = writer->buffer + writer->length;
    at[0] = tag;
    put_u32(at + 1, (uint32_t)length);
    if (length > 0)
        memcpy(at + RECORD_HEADER, value, length);
    writer->length += RECORD_HEADER + length;
}

/* The worker has numbers as doubles: a tenant's sparse file of eight exbibytes must not cause a protocol error there. */
#define NUMBER_MAX ((1ull << 53) - 1)

void write_number(struct record_writer *writer, uint8_t tag, uint64_t value)
{
    uint8_t raw[8];
    put_u64(raw, value > NUMBER_MAX ? NUMBER_MAX : value);
    write_bytes(writer, tag, raw, sizeof raw);
}

void write_text(struct record_writer *writer, uint8_t tag, const char *text)
{
    write_bytes(writer, tag, text, strlen(text));
}
