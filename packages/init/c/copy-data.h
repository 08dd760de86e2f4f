/* One file's bytes into another: shared with it where the file system can (reflink), copied otherwise. Holes stay holes. */
#ifndef BERTH_COPY_DATA_H
#define BERTH_COPY_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct copy_counts {
    uint64_t bytes;          /* of all files */
    uint64_t shared, copied; /* files with bytes, by how */
    bool cannot_share;       /* this file system said so */
};

/* `to` is empty. An errno. */
int copy_data(int from, int to, const struct stat *status, struct copy_counts *counts);

#endif
