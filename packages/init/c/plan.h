/* The type and target of each name in an archive. Of a name that comes twice the last entry counts. */
#ifndef BERTH_PLAN_H
#define BERTH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PLAN_ENTRIES_MAX = 100000,
    PLAN_BYTES_MAX = 32 * 1024 * 1024,
};

struct plan_entry {
    char type;
    char *path, *target;
};

struct plan {
    struct plan_entry *entries;
    size_t count, capacity;
    uint32_t *slots; /* one more than the index of an entry; 0 is free */
    size_t slot_count;
    size_t bytes;
};

enum plan_answer { PLAN_NEW, PLAN_AGAIN, PLAN_FULL };

/* `was` is the type it had before, 0 for a new one. */
enum plan_answer plan_add(struct plan *plan, const char *path, char type, const char *target, char *was);
void plan_free(struct plan *plan);
const struct plan_entry *plan_find(const struct plan *plan, const char *path, size_t length);

#endif
