/*
 * Operations of the file system on whole directories of the worker's own. None of them opens a file in a tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tool.h"
#include "volume-quota.h"

/* From linux/btrfs.h, a header that musl does not have. */
enum { VOLUME_PATH_BYTES = 4088, VOLUME_NAME_BYTES = 4040, VOLUME_READ_ONLY = 2 };

struct volume_args {
    int64_t fd;
    char name[VOLUME_PATH_BYTES];
};

struct volume_args_v2 {
    int64_t fd;
    uint64_t transid;
    uint64_t flags;
    uint64_t unused[4];
    char name[VOLUME_NAME_BYTES];
};

#define SUBVOLUME_CREATE _IOW(0x94, 14, struct volume_args)
#define SNAPSHOT_DESTROY _IOW(0x94, 15, struct volume_args)
#define SNAPSHOT_CREATE _IOW(0x94, 23, struct volume_args_v2)
#define EXCHANGE 2u /* RENAME_EXCHANGE, which not every libc defines */

/* The directory that `path` is in, opened; `name` is set to its last part. */
static int open_parent(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    char parent[4096];
    size_t length = slash == NULL ? 0 : (size_t)(slash - path);
    if (slash == NULL || length == 0 || length >= sizeof parent || strlen(slash + 1) >= VOLUME_NAME_BYTES) {
        errno = EINVAL;
        return -1;
    }
    memcpy(parent, path, length);
    parent[length] = 0;
    *name = slash + 1;
    return open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int change_subvolume(unsigned long what, const char *path)
{
    struct volume_args args = {.fd = 0};
    const char *name;
    int parent = open_parent(path, &name);
    if (parent < 0)
        return errno;
    memcpy(args.name, name, strlen(name) + 1);
    return syscall(SYS_ioctl, parent, what, &args) == 0 ? 0 : errno;
}

static int snapshot(const char *from, const char *to, uint64_t flags)
{
    struct volume_args_v2 args = {.flags = flags};
    const char *name;
    int parent = open_parent(to, &name);
    if (parent < 0)
        return errno;
    args.fd = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (args.fd < 0)
        return errno;
    memcpy(args.name, name, strlen(name) + 1);
    return syscall(SYS_ioctl, parent, (unsigned long)SNAPSHOT_CREATE, &args) == 0 ? 0 : errno;
}

static int done(int error, const char *path)
{
    if (error != 0)
        return tool_failed(error, path);
    puts("{}");
    return 0;
}

int volume_main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[0], "create") == 0)
        return done(change_subvolume(SUBVOLUME_CREATE, argv[1]), argv[1]);
    if (argc == 2 && strcmp(argv[0], "delete") == 0)
        return done(change_subvolume(SNAPSHOT_DESTROY, argv[1]), argv[1]);
    if (argc == 3 && strcmp(argv[0], "freeze") == 0)
        return done(snapshot(argv[1], argv[2], VOLUME_READ_ONLY), argv[2]);
    if (argc == 3 && strcmp(argv[0], "snapshot") == 0)
        return done(snapshot(argv[1], argv[2], 0), argv[2]);
    if (argc == 3 && strcmp(argv[0], "swap") == 0)
        return done(syscall(SYS_renameat2, AT_FDCWD, argv[1], AT_FDCWD, argv[2], EXCHANGE) == 0 ? 0 : errno, argv[1]);
    return volume_quota_main(argc, argv);
}
