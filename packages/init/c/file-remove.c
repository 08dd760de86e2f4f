#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "job.h"
#include "path.h"
#include "walk.h"

/* Passes over one tree: some file systems forget entries while others are deleted, and the tenant may be adding some. */
enum { PASSES = 5 };

struct removal {
    uint64_t count;
    int error; /* the first one other than ENOENT */
};

static void note(struct removal *removal, int error)
{
    if (error != 0 && error != ENOENT && removal->error == 0)
        removal->error = error;
}

static void remove_one(struct removal *removal, int dir, const char *name, int flags)
{
    if (unlinkat(dir, name, flags) == 0)
        removal->count++;
    else
        note(removal, errno);
}

static enum walk_verdict met(void *context, const struct walk_entry *entry)
{
    if (entry->type != 'd')
        remove_one(context, entry->dir, entry->name, 0);
    return WALK_ON;
}

/* A directory that could not be entered may still be empty: try to remove it, and otherwise report why it could not be entered. */
static enum walk_verdict left(void *context, int parent, const char *name, int error)
{
    struct removal *removal = context;
    if (error == 0)
        remove_one(removal, parent, name, AT_REMOVEDIR);
    else if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
        removal->count++;
    else
        note(removal, error);
    return WALK_ON;
}

static enum fail remove_tree(struct job *job, const struct place *place, struct removal *removal)
{
    for (int pass = 0; pass < PASSES; pass++) {
        uint64_t before = removal->count;
        removal->error = 0;
        struct walk walk = {.context = removal, .visit = met, .left = left, .max_depth = UINT64_MAX, .pry = 0700};
        mode_t restore;
        int fd = walk_open(&walk, place->dir, place->name, &restore);
        if (fd < 0 && errno == ENOENT)
            return OK;
        if (fd >= 0) {
            note(removal, walk_below(fd, restore, &walk));
        } else {
            removal->error = errno;
        }
        if (unlinkat(place->dir, place->name, AT_REMOVEDIR) == 0) {
            removal->count++;
            return OK;
        }
        if (removal->error == 0)
            removal->error = errno;
        if (removal->error != ENOTEMPTY && removal->count == before)
            break;
    }
    return failed(job, removal->error);
}

static enum fail remove_place(struct job *job, const struct place *place, bool wants_directory, struct removal *removal)
{
    bool recursive = (job->request->flags & REMOVE_RECURSIVE) != 0;
    struct stat status;
    if (fstatat(place->dir, place->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return failed(job, errno);
    if (!S_ISDIR(status.st_mode)) {
        if (wants_directory)
            return NOT_A_DIRECTORY;
        if (unlinkat(place->dir, place->name, 0) != 0)
            return failed(job, errno);
        removal->count++;
        return OK;
    }
    if (recursive)
        return remove_tree(job, place, removal);
    if (unlinkat(place->dir, place->name, AT_REMOVEDIR) != 0)
        return failed(job, errno);
    removal->count++;
    return OK;
}

enum fail file_remove(struct job *job)
{
    struct clean_path path;
    struct place place;
    struct removal removal = {.count = 0};
    enum fail fail = path_clean(job->request->path.at, job->request->path.length, &path);
    if (fail == OK && path.text[0] == 0)
        fail = INVALID_PATH;
    if (fail == OK && (fail = path_resolve(&path, 0, &place)) == OK) {
        fail = remove_place(job, &place, path.wants_directory, &removal);
        close(place.dir);
    }
    if (fail == NOT_FOUND && (job->request->flags & REMOVE_MISSING_OK) != 0) {
        job->error = 0;
        fail = OK;
    }
    if (fail == OK)
        write_number(&job->done, DONE_COUNT, removal.count);
    return fail;
}
