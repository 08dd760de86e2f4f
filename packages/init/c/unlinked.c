#include "unlinked.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inodes.h"
#include "process-stat.h"

enum sight { SEEN, HIDDEN, GONE };

struct sum {
    dev_t device;
    uint64_t bytes;
    struct inodes counted;
};

static void add(struct sum *sum, const struct stat *status)
{
    if (S_ISREG(status->st_mode) && status->st_nlink == 0 && status->st_dev == sum->device &&
        inodes_add(&sum->counted, status->st_dev, status->st_ino))
        sum->bytes += (uint64_t)status->st_blocks * 512;
}

static DIR *open_below(int dir, const char *name, const char *below)
{
    char path[64];
    snprintf(path, sizeof path, "%.20s/%s", name, below);
    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    DIR *opened = fdopendir(fd);
    if (opened == NULL)
        close(fd);
    return opened;
}

static bool is_over(int tasks, const char *tid)
{
    char path[64];
    struct process_stat stat;
    snprintf(path, sizeof path, "%.20s/stat", tid);
    return !process_stat_read(tasks, path, &stat) || (stat.flags & PROCESS_EXITING) != 0 || stat.state == 'Z' ||
           stat.state == 'X';
}

/* Adds the thread's deleted files to `sum`. Without a sum, only finds out whether its descriptors can be read. */
static enum sight of_thread(int tasks, const char *tid, struct sum *sum)
{
    DIR *fds = open_below(tasks, tid, "fd");
    bool denied = fds == NULL && errno == EACCES, enough = fds == NULL;
    while (!enough && !denied) {
        struct dirent *entry = readdir(fds);
        struct stat status;
        if (entry == NULL)
            break;
        if (entry->d_name[0] == '.')
            continue;
        if (fstatat(dirfd(fds), entry->d_name, &status, 0) != 0)
            denied = errno == EACCES;
        else if (sum != NULL)
            add(sum, &status);
        else
            enough = true;
    }
    if (fds != NULL)
        closedir(fds);
    /* The kernel also denies access to a thread that exits and has released its memory. So the last step is to ask whether it exits. */
    return is_over(tasks, tid) ? GONE : denied ? HIDDEN : SEEN;
}

static enum sight of_process(int proc, const char *pid, struct sum *sum)
{
    DIR *tasks = open_below(proc, pid, "task");
    enum sight sight = GONE;
    if (tasks == NULL)
        return sight;
    for (struct dirent *entry; sight == GONE && (entry = readdir(tasks)) != NULL;)
        if (entry->d_name[0] != '.')
            sight = of_thread(dirfd(tasks), entry->d_name, sum);
    closedir(tasks);
    return sight;
}

/* Keepers hide their descriptors from the tenant. They are in init's session, while every command has its own. */
static bool is_ours(int proc, const char *pid)
{
    char path[64];
    struct process_stat stat;
    snprintf(path, sizeof path, "%.20s/stat", pid);
    return !process_stat_read(proc, path, &stat) || stat.session == getsid(0);
}

/* gVisor hides an exiting thread without marking it as exiting, and it does not hide an unreadable program. So no process counts as hidden
 * there. A keeper never execs, so Linux reports at least one flag (PF_FORKNOEXEC) for it; gVisor reports none. */
static bool flags_are_reported(int proc)
{
    struct process_stat own;
    return process_stat_read(proc, "self/stat", &own) && own.flags != 0;
}

struct unlinked unlinked_measure(dev_t device)
{
    struct sum sum = {.device = device};
    struct unlinked found = {.bytes = 0};
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return found;
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            of_process(dirfd(proc), entry->d_name, &sum) == HIDDEN && !is_ours(dirfd(proc), entry->d_name))
            found.hidden = true;
    found.hidden = found.hidden && flags_are_reported(dirfd(proc));
    closedir(proc);
    inodes_free(&sum.counted);
    found.bytes = sum.bytes;
    return found;
}

bool unlinked_is_hidden(pid_t pid)
{
    char name[24];
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return false;
    snprintf(name, sizeof name, "%ld", (long)pid);
    bool hidden = of_process(proc, name, NULL) == HIDDEN;
    close(proc);
    return hidden;
}
