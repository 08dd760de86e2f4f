#include "idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool write_map(pid_t pid, const char *name, uid_t on_disk, uid_t inside)
{
    char path[64], line[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int length = snprintf(line, sizeof line, "%u %u 1\n", (unsigned)on_disk, (unsigned)inside);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = write(fd, line, (size_t)length) == length;
    int error = errno;
    close(fd);
    errno = error;
    return done;
}

/* The namespace needs a process for a moment: its maps are files of that process in /proc. */
static pid_t start_holder(void)
{
    long pid = syscall(SYS_clone, (long)(SIGCHLD | CLONE_NEWUSER), 0L, 0L, 0L, 0L);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        for (;;)
            pause();
    }
    return (pid_t)pid;
}

int idmap_open(uid_t on_disk, uid_t inside)
{
    char path[64];
    pid_t holder = start_holder();
    if (holder < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)holder);
    int fd = -1;
    if (write_map(holder, "uid_map", on_disk, inside) && write_map(holder, "gid_map", on_disk, inside))
        fd = open(path, O_RDONLY | O_CLOEXEC);
    int error = errno;
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    errno = error;
    return fd;
}
