/* Copies one file's bytes into another: shares the blocks where the file system can (reflink). Holes stay holes. */
#ifndef BERTH_COPY_DATA_H
#define BERTH_COPY_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct copy_counts {
    uint64_t bytes;          /* of all files */
    uint64_t shared, copied; /* files that are not empty, by how they were copied */
    bool cannot_share;       /* the file system has refused to share blocks */
};

/* `to` is empty. Returns an errno. */
int copy_data(int from, int to, const struct stat *status, struct copy_counts *counts);

#endif
