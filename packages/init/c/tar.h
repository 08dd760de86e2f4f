/*
 * Parses a tar archive that arrives in pieces of any size: ustar with pax and GNU long names, and older formats. Refuses an archive with
 * entries other than files, directories and links, and one that is damaged or cut short.
 */
#ifndef BERTH_TAR_H
#define BERTH_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TAR_BLOCK = 512,
    TAR_PROBLEM_MAX = 340,
    /* Long names, pax records and empty blocks between two entries. */
    TAR_GAP_MAX = 1024 * 1024,
};

struct tar_entry {
    char type; /* f d l, or h for a hard link */
    bool has_mode;
    uint32_t mode;
    uint64_t size; /* of a file */
    const char *path, *target; /* as the archive has them, valid during the call */
};

struct tar {
    void *context;
    /* False stops the reading; the callback then sets `problem`. Every file's content ends with a piece of 0 bytes. */
    bool (*entry)(void *context, const struct tar_entry *entry);
    bool (*content)(void *context, const uint8_t *bytes, size_t length);
    char problem[TAR_PROBLEM_MAX];

    enum { TAR_AT_HEADER, TAR_IN_CONTENT, TAR_IN_RECORD, TAR_IN_PADDING } at;
    uint8_t block[TAR_BLOCK];
    size_t filled;
    uint64_t left;   /* of the content or record */
    uint64_t padding;
    uint64_t gap, total, entries;
    bool is_file;    /* the entry is a file; other entries' content is skipped */
    char record_type;
    char *record;    /* a long name or pax records being gathered */
    size_t record_length;
    char *path, *target; /* of the next entry, from these records */
    bool has_size;
    uint64_t size;
};

bool tar_push(struct tar *tar, const uint8_t *bytes, size_t length);
/* After the last piece. */
bool tar_finish(struct tar *tar);
void tar_free(struct tar *tar);

/* Sets the problem. `name` replaces %s, and comes from the archive. Always returns false. */
bool tar_refuse(struct tar *tar, const char *format, const char *name);

#endif
