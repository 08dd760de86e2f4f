#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "inodes.h"
#include "job.h"
#include "path.h"
#include "unlinked.h"
#include "walk.h"

struct usage {
    uint64_t bytes, apparent, entries, most;
    bool truncated;
    struct inodes links;
};

static void count(struct usage *usage, const struct stat *status)
{
    if (!S_ISDIR(status->st_mode) && status->st_nlink > 1 && !inodes_add(&usage->links, status->st_dev, status->st_ino))
        return;
    usage->bytes += (uint64_t)status->st_blocks * 512;
    if (S_ISREG(status->st_mode))
        usage->apparent += (uint64_t)status->st_size;
}

static enum walk_verdict count_entry(void *context, const struct walk_entry *entry)
{
    struct usage *usage = context;
    struct stat status;
    if (usage->entries == usage->most) {
        usage->truncated = true;
        return WALK_STOP;
    }
    if (fstatat(entry->dir, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        usage->entries++;
        count(usage, &status);
    }
    return WALK_ON;
}

static enum walk_verdict not_entered(void *context, int parent, const char *name, int error)
{
    struct usage *usage = context;
    (void)parent;
    (void)name;
    if (error != 0)
        usage->truncated = true;
    return WALK_ON;
}

static enum fail measure(struct job *job, const struct place *place, struct usage *usage)
{
    const char *name = place->name[0] == 0 ? "." : place->name;
    struct stat status;
    if (fstatat(place->dir, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return failed(job, errno);
    count(usage, &status);
    if (!S_ISDIR(status.st_mode)) {
        usage->entries = 1;
        return OK;
    }
    struct walk walk = {
        .context = usage, .visit = count_entry, .left = not_entered, .max_depth = UINT64_MAX, .pry = 0500};
    mode_t restore;
    int base = walk_open(&walk, place->dir, name, &restore);
    int error = base < 0 ? errno : walk_below(base, restore, &walk);
    usage->truncated = usage->truncated || walk.incomplete;
    return error == 0 ? OK : failed(job, error);
}

/* Adds the shared directories. Files of other sandboxes' users may be hidden: each sandbox counts what it can see. A read-only directory
 * cannot grow, and is not counted. */
static void add_roots(struct usage *usage)
{
    struct statvfs about;
    for (size_t root = 1; path_root_fd(root) >= 0; root++) {
        if (fstatvfs(path_root_fd(root), &about) != 0 || (about.f_flag & ST_RDONLY) != 0)
            continue;
        struct walk walk = {.context = usage, .visit = count_entry, .max_depth = UINT64_MAX, .pry = 0500};
        mode_t restore;
        int base = walk_open(&walk, path_root_fd(root), ".", &restore);
        if (base >= 0)
            walk_below(base, restore, &walk);
    }
}

enum fail file_usage(struct job *job)
{
    const struct file_request *request = job->request;
    struct usage usage = {.most = request->has_max_items ? request->max_items : UINT64_MAX};
    struct clean_path path;
    struct place place;
    struct stat root;
    struct unlinked unlinked = {.bytes = 0};
    enum fail fail = path_clean(request->path.at, request->path.length, &path);
    if (fail == OK)
        fail = path_resolve(&path, PATH_FOLLOW, &place);
    if (fail != OK)
        return fail;
    fail = measure(job, &place, &usage);
    if (path.root == 0 && path.text[0] == 0)
        add_roots(&usage);
    close(place.dir);
    inodes_free(&usage.links);
    if (fail != OK)
        return fail;
    write_number(&job->done, DONE_BYTES, usage.bytes);
    write_number(&job->done, DONE_APPARENT, usage.apparent);
    write_number(&job->done, DONE_ENTRIES, usage.entries);
    if (fstat(path_workspace_fd(), &root) == 0)
        unlinked = unlinked_measure(root.st_dev);
    write_number(&job->done, DONE_UNLINKED, unlinked.bytes);
    write_number(&job->done, DONE_TRUNCATED, usage.truncated);
    write_number(&job->done, DONE_HIDDEN, unlinked.hidden);
    return OK;
}
