/* Which descriptors a forked child keeps: everything else init holds belongs to other channels. */
#ifndef BERTH_DESCRIPTORS_H
#define BERTH_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Closes all but stderr and those listed (at most 8; -1 entries are passed over). */
void keep_only(const int *keep, size_t count);

bool set_nonblocking(int fd);

#endif
