/* One line of /proc/PID/stat or /proc/PID/task/TID/stat, which the kernel shows to every user. */
#ifndef BERTH_PROCESS_STAT_H
#define BERTH_PROCESS_STAT_H

#include <stdbool.h>
#include <sys/types.h>

/* The thread has let go of its memory and its descriptors, or is about to. */
enum { PROCESS_EXITING = 0x4 };

struct process_stat {
    char state;
    pid_t parent, group, session;
    long flags;   /* the kernel's PF_…; 0 under gVisor */
    long threads; /* of the whole process, an exited main thread included until the last other one is gone */
};

/* False when the process is gone, or the line is malformed. */
bool process_stat_read(int dir, const char *path, struct process_stat *out);

#endif
