/*
 * Quotas of the file system on whole directories of the worker's own: project numbers of ext4 and xfs, quota groups of btrfs. Made by
 * system calls, since the worker's image does not have the distributions' programs for it.
 */
#include "volume-quota.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tool.h"

/* From linux/fs.h, linux/quota.h and linux/btrfs.h, headers that musl does not have. */
struct inode_attributes {
    uint32_t flags, extent_size, extents, project, cow_extent_size;
    uint8_t unused[8];
};

struct disk_quota {
    uint64_t block_hard, block_soft, space, inode_hard, inode_soft, inodes, block_time, inode_time;
    uint32_t valid;
};

struct group_limit {
    uint64_t group, flags, most_referenced, most_exclusive, reserved_referenced, reserved_exclusive;
};

struct quota_switch {
    uint64_t command, status;
};

struct tree_search {
    uint64_t tree, least_object, most_object, least_offset, most_offset, least_transaction, most_transaction;
    uint32_t least_type, most_type, items, unused;
    uint64_t unused_more[4];
    uint8_t found[3992];
};

#define GET_ATTRIBUTES _IOR('X', 31, struct inode_attributes)
#define SET_ATTRIBUTES _IOW('X', 32, struct inode_attributes)
#define QUOTA_SWITCH _IOWR(0x94, 40, struct quota_switch)
#define GROUP_LIMIT _IOR(0x94, 43, struct group_limit)
#define TREE_SEARCH _IOWR(0x94, 17, struct tree_search)

enum {
    INHERIT_PROJECT = 0x200,
    PROJECT_QUOTA = 2,
    GET_QUOTA = 0x800007,
    SET_QUOTA = 0x800008,
    BOTH_LIMITS = 1 | 4,
    SWITCH_ON = 1,
    QUOTA_TREE = 8,
    MOST_REFERENCED = 1,
};
#define NO_LIMIT UINT64_MAX
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

static int open_directory(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int failed(const char *path)
{
    return tool_failed(errno, path);
}

static bool number_of(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && *text >= '0' && *text <= '9' && *end == 0;
}

static int show_project(int fd, const char *path)
{
    struct inode_attributes attributes;
    if (syscall(SYS_ioctl, fd, GET_ATTRIBUTES, &attributes) != 0)
        return failed(path);
    printf("{\"number\":%" PRIu32 "}\n", (attributes.flags & INHERIT_PROJECT) != 0 ? attributes.project : 0);
    return 0;
}

/* Files that are made in the directory from now on inherit the number. */
static int set_project(int fd, const char *path, uint64_t number)
{
    struct inode_attributes attributes;
    if (syscall(SYS_ioctl, fd, GET_ATTRIBUTES, &attributes) != 0)
        return failed(path);
    attributes.project = (uint32_t)number;
    attributes.flags |= INHERIT_PROJECT;
    if (syscall(SYS_ioctl, fd, SET_ATTRIBUTES, &attributes) != 0)
        return failed(path);
    puts("{}");
    return 0;
}

/* Names the file system by the directory; for a kernel before 5.14, by the device. */
static int quota_call(unsigned command, int fd, const char *device, uint32_t number, struct disk_quota *quota)
{
    const unsigned whole = (command << 8) | PROJECT_QUOTA;
    if (syscall(SYS_quotactl_fd, fd, whole, number, quota) == 0)
        return 0;
    if (errno != ENOSYS)
        return -1;
    return (int)syscall(SYS_quotactl, whole, device, number, quota);
}

/* Whether the file system has project quotas: if so, it has usage of the number 0. */
static int try_project(int fd, const char *device)
{
    struct disk_quota quota;
    if (quota_call(GET_QUOTA, fd, device, 0, &quota) != 0)
        return failed(device);
    puts("{}");
    return 0;
}

/* A limit of 0 is none. */
static int limit_project(int fd, const char *device, const uint64_t words[3])
{
    struct disk_quota quota = {.block_hard = words[1], .inode_hard = words[2], .valid = BOTH_LIMITS};
    if (quota_call(SET_QUOTA, fd, device, (uint32_t)words[0], &quota) != 0)
        return failed(device);
    puts("{}");
    return 0;
}

static int switch_on(int fd, const char *path)
{
    struct quota_switch order = {.command = SWITCH_ON};
    if (syscall(SYS_ioctl, fd, QUOTA_SWITCH, &order) != 0)
        return failed(path);
    puts("{}");
    return 0;
}

/* btrfs has a tree of quotas exactly while quotas are on. */
static int show_groups(int fd, const char *path)
{
    struct tree_search search = {
        .tree = QUOTA_TREE,
        .most_object = UINT64_MAX,
        .most_offset = UINT64_MAX,
        .most_transaction = UINT64_MAX,
        .most_type = UINT32_MAX,
        .items = 1,
    };
    if (syscall(SYS_ioctl, fd, TREE_SEARCH, &search) != 0 && errno != ENOENT)
        return failed(path);
    printf("{\"on\":%s}\n", search.items > 0 && errno != ENOENT ? "true" : "false");
    return 0;
}

static int limit_group(int fd, const char *path, uint64_t bytes)
{
    struct group_limit limit = {.flags = MOST_REFERENCED, .most_referenced = bytes == 0 ? NO_LIMIT : bytes};
    if (syscall(SYS_ioctl, fd, GROUP_LIMIT, &limit) != 0)
        return failed(path);
    puts("{}");
    return 0;
}

static int on_directory(int fd, int argc, char **argv)
{
    const char *what = argv[0], *path = argv[1];
    uint64_t words[3] = {0};
    int first = strncmp(what, "project-limit", 13) == 0 ? 3 : 2;
    bool numbers = argc - first <= 3;
    for (int i = first; numbers && i < argc; i++)
        numbers = strcmp(what, "project-try") == 0 || number_of(argv[i], &words[i - first]);
    errno = 0;
    if (numbers && argc == 2 && strcmp(what, "project") == 0)
        return show_project(fd, path);
    if (numbers && argc == 3 && strcmp(what, "project-set") == 0 && words[0] > 0 && words[0] <= UINT32_MAX)
        return set_project(fd, path, words[0]);
    if (argc == 3 && strcmp(what, "project-try") == 0)
        return try_project(fd, argv[2]);
    if (numbers && argc == 6 && strcmp(what, "project-limit") == 0 && words[0] > 0 && words[0] <= UINT32_MAX)
        return limit_project(fd, argv[2], words);
    if (argc == 2 && strcmp(what, "groups") == 0)
        return show_groups(fd, path);
    if (argc == 2 && strcmp(what, "groups-on") == 0)
        return switch_on(fd, path);
    if (numbers && argc == 3 && strcmp(what, "group-limit") == 0)
        return limit_group(fd, path, words[0]);
    return tool_failed(EINVAL, path);
}

int volume_quota_main(int argc, char **argv)
{
    if (argc < 2)
        return tool_failed(EINVAL, "");
    int fd = open_directory(argv[1]);
    if (fd < 0)
        return failed(argv[1]);
    return on_directory(fd, argc, argv);
}
