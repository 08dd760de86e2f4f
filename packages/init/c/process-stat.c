#include "process-stat.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Numbers behind the state, as proc_pid_stat(5) orders them; those up to THREADS are read. */
enum { PARENT, GROUP, SESSION, FLAGS = 5, THREADS = 16, NUMBERS };

/* "pid (comm) state ppid pgrp session …"; comm may hold anything, so fields are counted from the last parenthesis. */
bool process_stat_read(int dir, const char *path, struct process_stat *out)
{
    char line[512];
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, line, sizeof line - 1);
    close(fd);
    if (got <= 0)
        return false;
    line[got] = 0;
    char *at = strrchr(line, ')');
    if (at == NULL || at[1] != ' ' || at[2] == 0)
        return false;
    out->state = at[2];
    long numbers[NUMBERS];
    at += 3;
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = strtol(at, &at, 10);
    out->parent = (pid_t)numbers[PARENT];
    out->group = (pid_t)numbers[GROUP];
    out->session = (pid_t)numbers[SESSION];
    out->flags = numbers[FLAGS];
    out->threads = numbers[THREADS];
    return true;
}
