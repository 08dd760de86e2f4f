#include "descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* the same number on every architecture */
#endif

enum { KEEP_MAX = 12, LARGE_PIPE_BYTES = 256 * 1024 };

bool set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && ((flags & O_NONBLOCK) != 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
}

int open_pipe(int pair[2], int ours, enum pipe_size size)
{
    if (pipe2(pair, O_CLOEXEC) != 0 || !set_nonblocking(pair[ours]))
        return errno;
    if (size == PIPE_LARGE)
        fcntl(pair[ours], F_SETPIPE_SZ, LARGE_PIPE_BYTES); /* if the kernel refuses, the size stays */
    return 0;
}

/* For kernels before 5.9 and sandboxes without close_range. init has few descriptors with low numbers, four for each of 64 channels. So a
 * gap of 1,024 unused numbers means the end. */
static void close_one_by_one(int from, int to)
{
    int unused = 0;
    for (int fd = from; fd <= to && unused < 1024; fd++)
        unused = close(fd) == 0 ? 0 : unused + 1;
}

static void close_between(int from, int to)
{
    if (from > to)
        return;
    if (syscall(SYS_close_range, (unsigned)from, (unsigned)to, 0u) != 0)
        close_one_by_one(from, to);
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

void keep_only(const int *keep, size_t count)
{
    int sorted[KEEP_MAX + 1] = {STDERR_FILENO};
    size_t kept = 1;
    for (size_t i = 0; i < count && kept <= KEEP_MAX; i++)
        if (keep[i] >= 0)
            sorted[kept++] = keep[i];
    qsort(sorted, kept, sizeof *sorted, ascending);
    int next = 0;
    for (size_t i = 0; i < kept; i++) {
        close_between(next, sorted[i] - 1);
        next = sorted[i] + 1;
    }
    close_between(next, 0x7FFFFFFF);
}
