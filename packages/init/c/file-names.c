/* The operations that change only names: mkdir and move. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "job.h"
#include "path.h"
#include "rename.h"
#include "room.h"

/* Makes the directory. Its parent exists. */
static enum fail make_one(struct job *job, const struct place *place, bool *created)
{
    const struct file_request *request = job->request;
    bool existing_is_fine = (request->flags & MKDIR_PARENTS) != 0;
    struct stat status;
    if (place->name[0] == 0)
        return existing_is_fine ? OK : EXISTS;
    mode_t mode = request->has_mode ? (mode_t)(request->mode & 07777) : 0755;
    if (mkdirat(place->dir, place->name, mode) == 0) {
        if (!room_take_directory()) {
            unlinkat(place->dir, place->name, AT_REMOVEDIR);
            return QUOTA;
        }
        *created = true;
        /* mkdir cuts the mode by the umask; the request's mode counts. */
        if (request->has_mode && fchmodat(place->dir, place->name, mode, 0) != 0)
            return failed(job, errno);
        return OK;
    }
    int error = errno;
    if (error != EEXIST || !existing_is_fine)
        return failed(job, error);
    if (fstatat(place->dir, place->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return failed(job, errno);
    return S_ISDIR(status.st_mode) ? OK : EXISTS;
}

enum fail file_mkdir(struct job *job)
{
    struct clean_path path;
    struct place place;
    bool created = false;
    int parents = (job->request->flags & MKDIR_PARENTS) != 0 ? PATH_MAKE_PARENTS : 0;
    enum fail fail = path_clean(job->request->path.at, job->request->path.length, &path);
    if (fail == OK)
        fail = path_resolve(&path, PATH_FOLLOW | parents, &place);
    if (fail != OK)
        return fail;
    fail = make_one(job, &place, &created);
    close(place.dir);
    if (fail == OK) {
        write_number(&job->done, DONE_CREATED, created);
        room_report(&job->done);
    }
    return fail;
}

static enum fail find(struct text text, int options, struct place *place)
{
    struct clean_path path;
    enum fail fail = path_clean(text.at, text.length, &path);
    if (fail == OK && path.text[0] == 0)
        fail = INVALID_PATH; /* the workspace itself cannot be moved */
    return fail == OK ? path_resolve(&path, options, place) : fail;
}

/* Follows no symlink at the end of either name: the link itself is moved, or replaced. */
enum fail file_move(struct job *job)
{
    const struct file_request *request = job->request;
    struct place from, to;
    enum fail fail = find(request->path, 0, &from);
    if (fail != OK)
        return fail;
    fail = find(request->path2, (request->flags & MOVE_PARENTS) != 0 ? PATH_MAKE_PARENTS : 0, &to);
    if (fail == OK) {
        int error = 0;
        if ((request->flags & MOVE_OVERWRITE) == 0)
            error = rename_exclusive(from.dir, from.name, to.dir, to.name);
        else if (renameat(from.dir, from.name, to.dir, to.name) != 0)
            error = errno;
        fail = error == 0 ? OK : failed(job, error);
        if (fail == OK)
            room_report(&job->done);
        close(to.dir);
    }
    close(from.dir);
    return fail;
}
