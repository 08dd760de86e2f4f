/*
 * Space that no name leads to any more: deleted files that processes still hold open.
 *
 * It is read from /proc/PID/task/TID/fd of one living thread of each process: the filter of seccomp.c keeps threads from having a
 * table of descriptors of their own, and /proc/PID/fd is empty once the main thread has exited. Not found are files that are only mapped,
 * that wait in a unix socket to be received, or that processes pass on faster than init can look.
 */
#ifndef BERTH_UNLINKED_H
#define BERTH_UNLINKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct unlinked {
    uint64_t bytes; /* allocated */
    /* A process of a command may be hidden, see below. A command that is just starting looks hidden, too. */
    bool hidden;
};

struct unlinked unlinked_measure(dev_t device);

/* Whether the kernel hides what this process has open: its user may execute its program but not read it. */
bool unlinked_is_hidden(pid_t pid);

#endif
