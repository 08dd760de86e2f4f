#include "unlinked.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inodes.h"

static uint64_t of_process(int proc, const char *pid, dev_t device, struct inodes *seen)
{
    char path[64];
    snprintf(path, sizeof path, "%.20s/fd", pid);
    int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *fds = fd < 0 ? NULL : fdopendir(fd);
    if (fds == NULL) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    uint64_t bytes = 0;
    for (struct dirent *entry; (entry = readdir(fds)) != NULL;) {
        struct stat status;
        if (entry->d_name[0] == '.' || fstatat(fd, entry->d_name, &status, 0) != 0)
            continue;
        if (S_ISREG(status.st_mode) && status.st_nlink == 0 && status.st_dev == device &&
            inodes_add(seen, status.st_dev, status.st_ino))
            bytes += (uint64_t)status.st_blocks * 512;
    }
    closedir(fds);
    return bytes;
}

uint64_t unlinked_bytes(dev_t device)
{
    struct inodes seen = {.slots = NULL};
    uint64_t bytes = 0;
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            bytes += of_process(dirfd(proc), entry->d_name, device, &seen);
    closedir(proc);
    inodes_free(&seen);
    return bytes;
}
