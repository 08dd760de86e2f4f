/* Which descriptors a forked child keeps: everything else init holds belongs to other channels. */
#ifndef BERTH_DESCRIPTORS_H
#define BERTH_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Closes all but stderr and those listed (at most 8; -1 entries are passed over). */
void keep_only(const int *keep, size_t count);

bool set_nonblocking(int fd);

/* A pipe for a child, of which our end (0: reading, 1: writing) does not block. A large one costs a part of what the kernel
 * allows the user's pipes, and halves the turns that a stream of bytes takes. Returns an errno. */
enum pipe_size { PIPE_ORDINARY, PIPE_LARGE };
int open_pipe(int pair[2], int ours, enum pipe_size size);

#endif
