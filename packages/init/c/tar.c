#include "tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "utf8.h"

/* Offsets and sizes of a header's fields. */
enum {
    NAME = 0,
    NAME_SIZE = 100,
    MODE = 100,
    SIZE = 124,
    SUM = 148,
    TYPE = 156,
    LINK = 157,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_SIZE = 155,
};

static const uint64_t SIZE_MAX_EXACT = UINT64_C(1) << 53;

bool tar_refuse(struct tar *tar, const char *format, const char *name)
{
    char shown[256];
    snprintf(shown, sizeof shown, "%s", name);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(tar->problem, sizeof tar->problem, format, shown);
#pragma GCC diagnostic pop
    return false;
}

/* Octal, or GNU's base 256 for what is larger. False for anything else. */
static bool number(const uint8_t *field, size_t size, bool *there, uint64_t *out)
{
    *out = 0;
    *there = true;
    if ((field[0] & 0x80) != 0) {
        if (field[0] != 0x80)
            return false;
        for (size_t i = 1; i < size; i++) {
            if (*out >> 53 != 0)
                return false;
            *out = *out << 8 | field[i];
        }
        return *out < SIZE_MAX_EXACT;
    }
    size_t i = 0;
    while (i < size && field[i] == ' ')
        i++;
    *there = i < size && field[i] != 0;
    for (; i < size && field[i] != 0 && field[i] != ' '; i++) {
        if (field[i] < '0' || field[i] > '7' || *out >> 53 != 0)
            return false;
        *out = *out << 3 | (uint64_t)(field[i] - '0');
    }
    return *out < SIZE_MAX_EXACT;
}

static bool sum_fits(const uint8_t block[TAR_BLOCK])
{
    uint64_t stated, sum = 0;
    bool there;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= SUM && i < SUM + 8 ? ' ' : block[i];
    return number(block + SUM, 8, &there, &stated) && there && stated == sum;
}

static bool is_empty(const uint8_t block[TAR_BLOCK])
{
    for (size_t i = 0; i < TAR_BLOCK; i++)
        if (block[i] != 0)
            return false;
    return true;
}

static bool refuse_header(struct tar *tar)
{
    if (tar->entries == 0)
        return tar_refuse(tar, "it is not a tar archive%s", "");
    char place[32];
    snprintf(place, sizeof place, "%llu", (unsigned long long)tar->entries + 1);
    return tar_refuse(tar, "the header of entry %s is damaged", place);
}

/* The path in the header itself. */
static void header_path(const uint8_t *block, char out[NAME_SIZE + PREFIX_SIZE + 2])
{
    size_t at = 0;
    /* GNU's format has times in the field of the prefix. */
    if (memcmp(block + MAGIC, "ustar\0", 6) == 0 && block[PREFIX] != 0) {
        at = strnlen((const char *)block + PREFIX, PREFIX_SIZE);
        memcpy(out, block + PREFIX, at);
        out[at++] = '/';
    }
    size_t length = strnlen((const char *)block + NAME, NAME_SIZE);
    memcpy(out + at, block + NAME, length);
    out[at + length] = 0;
}

static char entry_type(char flag, const char *path)
{
    size_t length = strlen(path);
    switch (flag) {
    case 0:
    case '0':
    case '7': return length > 0 && path[length - 1] == '/' ? 'd' : 'f'; /* the oldest tars have no type for directories */
    case '1': return 'h';
    case '2': return 'l';
    case '5': return 'd';
    default: return 0;
    }
}

static void forget_records(struct tar *tar)
{
    free(tar->path);
    free(tar->target);
    tar->path = tar->target = NULL;
    tar->has_size = false;
}

static bool begin_entry(struct tar *tar, uint64_t size)
{
    char path[NAME_SIZE + PREFIX_SIZE + 2], target[NAME_SIZE + 1] = {0};
    header_path(tar->block, path);
    memcpy(target, tar->block + LINK, NAME_SIZE);
    struct tar_entry entry = {.path = tar->path != NULL ? tar->path : path,
                              .target = tar->target != NULL ? tar->target : target};
    entry.type = entry_type((char)tar->block[TYPE], entry.path);
    char flag[2] = {(char)tar->block[TYPE], 0};
    if (entry.type == 0)
        return tar_refuse(tar, "an entry is neither a file nor a directory nor a link (type %s)", flag);
    if (!utf8_is_valid(entry.path) || !utf8_is_valid(entry.target))
        return tar_refuse(tar, "it has a name that is not UTF-8: %s", entry.path);
    uint64_t mode;
    if (!number(tar->block + MODE, 8, &entry.has_mode, &mode))
        return refuse_header(tar);
    if (tar->has_size)
        size = tar->size;
    entry.mode = (uint32_t)(mode & 0777);
    entry.size = entry.type == 'f' ? size : 0;
    tar->is_file = entry.type == 'f';
    /* A directory has no content, whatever its header says. */
    tar->left = entry.type == 'd' ? 0 : size;
    tar->padding = (TAR_BLOCK - tar->left % TAR_BLOCK) % TAR_BLOCK;
    tar->at = TAR_IN_CONTENT;
    tar->gap = 0;
    tar->entries++;
    bool on = tar->entry(tar->context, &entry);
    forget_records(tar);
    return on && (tar->left > 0 || !tar->is_file || tar->content(tar->context, NULL, 0));
}

/* A long name, or pax records. */
static bool begin_record(struct tar *tar, uint64_t size)
{
    free(tar->record);
    tar->record_length = 0;
    tar->record_type = (char)tar->block[TYPE];
    /* This bounds the record's memory. Its bytes are added to the gap as they come. */
    tar->record = size > TAR_GAP_MAX ? NULL : malloc((size_t)size + 1);
    if (tar->record == NULL)
        return tar_refuse(tar, "it has more than 1048576 bytes between two entries, or after the last%s", "");
    tar->left = size;
    tar->padding = (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
    tar->at = TAR_IN_RECORD;
    return true;
}

static bool take_header(struct tar *tar)
{
    tar->gap += TAR_BLOCK;
    if (is_empty(tar->block))
        return true;
    uint64_t size;
    bool there;
    if (!sum_fits(tar->block))
        return refuse_header(tar);
    if (!number(tar->block + SIZE, 12, &there, &size))
        return tar_refuse(tar, "it has a number that is too large%s", "");
    switch (tar->block[TYPE]) {
    case 'x':
    case 'g':
    case 'L':
    case 'K': return begin_record(tar, size);
    default: return begin_entry(tar, size);
    }
}

static bool set_text(char **place, const char *text, size_t length)
{
    free(*place);
    *place = memchr(text, 0, length) == NULL ? malloc(length + 1) : NULL;
    if (*place == NULL)
        return false;
    memcpy(*place, text, length);
    (*place)[length] = 0;
    return true;
}

static bool set_size(struct tar *tar, const char *text, size_t length)
{
    tar->size = 0;
    tar->has_size = length > 0 && length <= 15;
    for (size_t i = 0; i < length && tar->has_size; i++) {
        tar->has_size = text[i] >= '0' && text[i] <= '9';
        tar->size = tar->size * 10 + (uint64_t)(text[i] - '0');
    }
    return tar->has_size;
}

static bool take_pair(struct tar *tar, const char *key, size_t key_length, const char *value, size_t length)
{
    static const char sparse[] = "GNU.sparse.";
    if (key_length == 4 && memcmp(key, "path", 4) == 0)
        return set_text(&tar->path, value, length);
    if (key_length == 8 && memcmp(key, "linkpath", 8) == 0)
        return set_text(&tar->target, value, length);
    if (key_length == 4 && memcmp(key, "size", 4) == 0)
        return set_size(tar, value, length);
    if (key_length >= sizeof sparse - 1 && memcmp(key, sparse, sizeof sparse - 1) == 0)
        return tar_refuse(tar, "it has a sparse file%s", "");
    return true;
}

/* "LENGTH KEY=VALUE\n". LENGTH counts the whole record. */
static bool take_pax(struct tar *tar)
{
    for (size_t at = 0; at < tar->record_length;) {
        size_t length = 0, digits = 0, left = tar->record_length - at;
        const char *start = tar->record + at;
        for (; digits < left && digits < 8 && start[digits] >= '0' && start[digits] <= '9'; digits++)
            length = length * 10 + (size_t)(start[digits] - '0');
        if (digits == 0 || digits == left || start[digits] != ' ' || length < digits + 3 || length > left ||
            start[length - 1] != '\n')
            return false;
        const char *key = start + digits + 1, *end = start + length - 1;
        const char *equals = memchr(key, '=', (size_t)(end - key));
        if (equals == NULL || !take_pair(tar, key, (size_t)(equals - key), equals + 1, (size_t)(end - equals - 1)))
            return false;
        at += length;
    }
    return true;
}

static bool take_record(struct tar *tar)
{
    tar->record[tar->record_length] = 0;
    bool good = true;
    switch (tar->record_type) {
    case 'L': good = set_text(&tar->path, tar->record, strlen(tar->record)); break;
    case 'K': good = set_text(&tar->target, tar->record, strlen(tar->record)); break;
    case 'x': good = take_pax(tar); break;
    default: break; /* a global record names no entry */
    }
    free(tar->record);
    tar->record = NULL;
    return good || (tar->problem[0] == 0 ? refuse_header(tar) : false);
}

/* Consumes the beginning of a piece, and returns how many bytes. 0: the archive is refused. */
static size_t take_piece(struct tar *tar, const uint8_t *bytes, size_t length)
{
    size_t part = (size_t)min_u64(tar->left, length);
    switch (tar->at) {
    case TAR_AT_HEADER:
        part = min_size(TAR_BLOCK - tar->filled, length);
        memcpy(tar->block + tar->filled, bytes, part);
        tar->filled += part;
        if (tar->filled < TAR_BLOCK)
            return part;
        tar->filled = 0;
        return take_header(tar) ? part : 0;
    case TAR_IN_CONTENT:
        tar->left -= part;
        if (tar->is_file && (!tar->content(tar->context, bytes, part) ||
                             (tar->left == 0 && !tar->content(tar->context, NULL, 0))))
            return 0;
        return part;
    case TAR_IN_RECORD:
        memcpy(tar->record + tar->record_length, bytes, part);
        tar->record_length += part;
        tar->left -= part;
        tar->gap += part;
        return tar->left > 0 || take_record(tar) ? part : 0;
    case TAR_IN_PADDING:
        part = (size_t)min_u64(tar->padding, length);
        tar->padding -= part;
        return part;
    }
    return 0;
}

/* Enters the next part if nothing is left of the present one. Consumes no byte. */
static bool move_on(struct tar *tar)
{
    if (tar->at == TAR_IN_RECORD && tar->left == 0 && tar->record != NULL && !take_record(tar))
        return false;
    if ((tar->at == TAR_IN_CONTENT || tar->at == TAR_IN_RECORD) && tar->left == 0)
        tar->at = TAR_IN_PADDING;
    if (tar->at == TAR_IN_PADDING && tar->padding == 0)
        tar->at = TAR_AT_HEADER;
    return true;
}

bool tar_push(struct tar *tar, const uint8_t *bytes, size_t length)
{
    tar->total += length;
    while (length > 0) {
        if (!move_on(tar))
            return false;
        size_t part = take_piece(tar, bytes, length);
        if (part == 0)
            return false;
        if (tar->gap > TAR_GAP_MAX)
            return tar_refuse(tar, "it has more than 1048576 bytes between two entries, or after the last%s", "");
        bytes += part;
        length -= part;
    }
    return true;
}

bool tar_finish(struct tar *tar)
{
    if (!move_on(tar))
        return false;
    if (tar->total < TAR_BLOCK)
        return tar_refuse(tar, "it is not a tar archive%s", "");
    bool whole = tar->at == TAR_AT_HEADER && tar->filled == 0 && tar->path == NULL && tar->target == NULL;
    return whole || tar_refuse(tar, "it ends in the middle%s", "");
}

void tar_free(struct tar *tar)
{
    forget_records(tar);
    free(tar->record);
    tar->record = NULL;
}
