/* Sends ITEMS: gathers them into blocks, and counts them against a bound. */
#ifndef BERTH_ITEMS_H
#define BERTH_ITEMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "job.h"

struct items {
    int out;
    uint64_t count, most;
    bool truncated; /* there was more than `most` */
    bool broken;    /* the worker takes no more of them */
    size_t used;
};

/* The bound when the request names none. */
enum { ITEMS_MOST = 10000 };

void items_begin(struct items *items, const struct job *job);

/* Whether one more item may be added; marks the list as truncated if not. */
bool items_room(struct items *items);
void items_add_file(struct items *items, const char *path, const struct stat *status, int dir, const char *name);
void items_add_line(struct items *items, const char *path, uint64_t line, const char *text, size_t length, bool cut);
/* Names an entry that was not made, with the reason. */
void items_add_refusal(struct items *items, const char *path, enum fail fail, const char *text);
enum fail items_end(struct items *items, struct job *job, bool incomplete);

#endif
