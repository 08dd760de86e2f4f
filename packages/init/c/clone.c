#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copy-data.h"
#include "hard-links.h"
#include "path.h"
#include "tool.h"
#include "walk.h"

/* A directory's own mode and times are set last: making entries in it would change its times, or fail. */
struct made_directory {
    char *path;
    struct stat status;
};

struct clone {
    int to;              /* the directory that is filled */
    /* The tree's own directory. Many forks of a snapshot are made at once: they read it side by side, and one of them alone while it
     * has to change a mode in it. */
    int lock;
    bool is_alone;
    int parent;          /* where the last entry went, or -1 */
    size_t parent_length; /* of its path */
    char parent_path[PATH_MAX_BYTES + 1];
    struct made_directory *made;
    size_t made_count, made_capacity;
    struct hard_links links;
    struct copy_counts counts;
    uint64_t entries, skipped;
    int error; /* the first, with where it happened */
    char error_path[PATH_MAX_BYTES + 1];
};

static enum walk_verdict fail_at(struct clone *clone, int error, const char *path)
{
    if (clone->error == 0) {
        clone->error = error;
        snprintf(clone->error_path, sizeof clone->error_path, "%s", path);
    }
    return WALK_STOP;
}

static void set_times(int dir, const char *name, const struct stat *status)
{
    const struct timespec times[2] = {status->st_atim, status->st_mtim};
    utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

/* The directory that the entry goes into. It is mostly the last entry's. */
static int open_target(struct clone *clone, const struct walk_entry *entry)
{
    size_t length = strlen(entry->path) - strlen(entry->name);
    size_t parent = length > 0 ? length - 1 : 0;
    if (clone->parent >= 0 && parent == clone->parent_length && memcmp(clone->parent_path, entry->path, parent) == 0)
        return clone->parent;
    if (clone->parent >= 0)
        close(clone->parent);
    memcpy(clone->parent_path, entry->path, parent);
    clone->parent_path[parent] = 0;
    clone->parent_length = parent;
    const char *path = parent == 0 ? "." : clone->parent_path;
    clone->parent = openat(clone->to, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return clone->parent;
}

static int make_directory(struct clone *clone, int target, const struct walk_entry *entry, const struct stat *status)
{
    if (mkdirat(target, entry->name, 0700) != 0)
        return errno;
    if (clone->made_count == clone->made_capacity) {
        size_t more = clone->made_capacity == 0 ? 256 : clone->made_capacity * 2;
        struct made_directory *grown = realloc(clone->made, more * sizeof *grown);
        if (grown == NULL)
            return ENOMEM;
        clone->made = grown;
        clone->made_capacity = more;
    }
    char *path = strdup(entry->path);
    if (path == NULL)
        return ENOMEM;
    clone->made[clone->made_count++] = (struct made_directory){path, *status};
    return 0;
}

static int copy_link(int target, const struct walk_entry *entry, const struct stat *status)
{
    char text[PATH_MAX_BYTES + 1];
    ssize_t length = readlinkat(entry->dir, entry->name, text, sizeof text - 1);
    if (length < 0)
        return errno;
    text[length] = 0;
    if (symlinkat(text, target, entry->name) != 0)
        return errno;
    set_times(target, entry->name, status);
    return 0;
}

static int make_fifo(int target, const struct walk_entry *entry, const struct stat *status)
{
    mode_t mode = status->st_mode & 07777;
    if (mkfifoat(target, entry->name, 0600) != 0 || fchmodat(target, entry->name, mode, 0) != 0)
        return errno;
    set_times(target, entry->name, status);
    return 0;
}

static void lock(struct clone *clone, int how)
{
    while (clone->lock >= 0 && flock(clone->lock, how) != 0 && errno == EINTR) {
    }
}

/* A file system without locks copies without them. */
static void be_alone(void *context)
{
    struct clone *clone = context;
    if (!clone->is_alone)
        lock(clone, LOCK_EX);
    clone->is_alone = true;
}

/* Opens the file even if its owner has removed all permissions to read it. */
static int open_source(struct clone *clone, const struct walk_entry *entry, const struct stat *status)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(entry->dir, entry->name, flags);
    mode_t mode = status->st_mode & 07777;
    if (fd >= 0 || errno != EACCES)
        return fd;
    be_alone(clone);
    if (fchmodat(entry->dir, entry->name, mode | 0400, 0) != 0)
        return -1;
    fd = openat(entry->dir, entry->name, flags);
    if (fd >= 0)
        fchmod(fd, mode);
    return fd;
}

static int copy_file(struct clone *clone, int target, const struct walk_entry *entry, const struct stat *status)
{
    if (status->st_nlink > 1) {
        const char *first = hard_links_find(&clone->links, status->st_ino);
        if (first != NULL)
            return linkat(clone->to, first, target, entry->name, 0) == 0 ? 0 : errno;
    }
    int from = open_source(clone, entry, status);
    if (from < 0)
        return errno;
    /* With its mode from the beginning, of which a write would take the set-id bits away. */
    mode_t mode = status->st_mode & 07777;
    int to = openat(target, entry->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0777);
    int error = to < 0 ? errno : copy_data(from, to, status, &clone->counts);
    close(from);
    if (to < 0)
        return error;
    const struct timespec times[2] = {status->st_atim, status->st_mtim};
    if (error == 0)
        error = (mode == (mode & 0777) || fchmod(to, mode) == 0) && futimens(to, times) == 0 ? 0 : errno;
    close(to);
    if (error == 0 && status->st_nlink > 1 && !hard_links_add(&clone->links, status->st_ino, entry->path))
        return ENOMEM;
    return error;
}

static int copy_entry(struct clone *clone, int target, const struct walk_entry *entry)
{
    struct stat status;
    if (fstatat(entry->dir, entry->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    clone->entries++;
    if (S_ISDIR(status.st_mode))
        return make_directory(clone, target, entry, &status);
    if (S_ISREG(status.st_mode))
        return copy_file(clone, target, entry, &status);
    if (S_ISLNK(status.st_mode))
        return copy_link(target, entry, &status);
    if (S_ISFIFO(status.st_mode))
        return make_fifo(target, entry, &status);
    /* A socket is useless without its listener, and a tenant cannot make a device. */
    clone->entries--;
    clone->skipped++;
    return 0;
}

static enum walk_verdict met(void *context, const struct walk_entry *entry)
{
    struct clone *clone = context;
    int target = open_target(clone, entry);
    int error = target < 0 ? errno : copy_entry(clone, target, entry);
    return error == 0 ? WALK_ON : fail_at(clone, error, entry->path);
}

static enum walk_verdict left(void *context, int parent, const char *name, int error)
{
    (void)parent;
    return error == 0 ? WALK_ON : fail_at(context, error, name);
}

/* The deepest first: a directory that loses its permissions is then no parent of those that are still to be finished. */
static int finish_directories(struct clone *clone)
{
    for (size_t i = clone->made_count; i-- > 0;) {
        const struct made_directory *one = &clone->made[i];
        set_times(clone->to, one->path, &one->status);
        if (fchmodat(clone->to, one->path, one->status.st_mode & 07777, 0) != 0)
            return errno;
    }
    return 0;
}

/* Holes have no end: more than a reader of JSON can hold would be no number to it. */
static uint64_t sayable(uint64_t number)
{
    const uint64_t most = (UINT64_C(1) << 53) - 1;
    return number < most ? number : most;
}

int clone_main(const char *from, const char *to)
{
    static struct clone clone = {.parent = -1};
    struct walk walk = {.context = &clone, .visit = met, .left = left, .base_path = "", .max_depth = UINT64_MAX, .pry = 0500,
                        .before_prying = be_alone};
    mode_t restore;
    umask(0);
    clone.to = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (clone.to < 0)
        return tool_failed(errno, "");
    clone.lock = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    lock(&clone, LOCK_SH);
    int base = walk_open(&walk, AT_FDCWD, from, &restore);
    if (base < 0)
        return tool_failed(errno, "");
    int error = walk_below(base, restore, &walk);
    if (clone.error != 0)
        return tool_failed(clone.error, clone.error_path);
    if (error == 0 && walk.incomplete)
        error = ENAMETOOLONG;
    if (error == 0)
        error = finish_directories(&clone);
    if (error != 0)
        return tool_failed(error, "");
    printf("{\"entries\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"shared\":%" PRIu64 ",\"copied\":%" PRIu64 ",\"skipped\":%" PRIu64
           "}\n",
           clone.entries, sayable(clone.counts.bytes), clone.counts.shared, clone.counts.copied, clone.skipped);
    return 0;
}
