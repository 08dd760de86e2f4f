/* Starts the leader of a command, its first process. */
#ifndef BERTH_SPAWN_H
#define BERTH_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "fail.h"

struct spawn {
    char **argv, **envp;
    int cwd; /* a directory */
    int in;  /* -1: /dev/null */
    int out, err;
    bool no_growth; /* the workspace is full: the command may write to no file */
};

/* Returns the pid once the program runs, else 0 with the reason. Blocks for the time of one exec. */
pid_t spawn_leader(const struct spawn *spawn, enum fail *why, int *error);

#endif
