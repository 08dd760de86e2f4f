/* Which descriptors a forked child keeps. init's other descriptors belong to other channels. */
#ifndef BERTH_DESCRIPTORS_H
#define BERTH_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Closes all but stderr and those listed (at most 12; entries of -1 are skipped). */
void keep_only(const int *keep, size_t count);

bool set_nonblocking(int fd);

/* Opens a pipe for a child. Our end (0: reading, 1: writing) does not block. A large pipe halves the number of reads for a stream of bytes,
 * and uses up part of the bytes that the kernel allows all pipes of a user. Returns an errno. */
enum pipe_size { PIPE_ORDINARY, PIPE_LARGE };
int open_pipe(int pair[2], int ours, enum pipe_size size);

#endif
