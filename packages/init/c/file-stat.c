#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "job.h"
#include "path.h"

static enum fail hash_named(struct job *job, const struct place *place)
{
    struct stat status;
    uint8_t digest[32];
    int fd;
    enum fail fail = open_regular(job, place->dir, place->name, O_RDONLY, &fd, &status);
    if (fail != OK)
        return fail;
    fail = hash_file(job, fd, (uint64_t)status.st_size, digest);
    close(fd);
    if (fail == OK)
        write_bytes(&job->done, DONE_SHA256, digest, sizeof digest);
    return fail;
}

static enum fail describe(struct job *job, const struct place *place, bool wants_directory)
{
    struct stat status;
    if (fstatat(place->dir, place->name, &status, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0)
        return failed(job, errno);
    if (wants_directory && !S_ISDIR(status.st_mode))
        return NOT_A_DIRECTORY;
    char type = type_letter(status.st_mode);
    write_bytes(&job->done, DONE_TYPE, &type, 1);
    write_number(&job->done, DONE_SIZE, (uint64_t)status.st_size);
    write_number(&job->done, DONE_MODE, status.st_mode & 07777);
    write_number(&job->done, DONE_MTIME_MS, mtime_ms(&status));
    if (type == 'l') {
        char target[PATH_MAX_BYTES + 1];
        ssize_t length = readlinkat(place->dir, place->name, target, sizeof target - 1);
        if (length < 0)
            return failed(job, errno);
        write_bytes(&job->done, DONE_TARGET, target, (size_t)length);
    }
    return type == 'f' && (job->request->flags & STAT_HASH) != 0 ? hash_named(job, place) : OK;
}

enum fail file_stat(struct job *job)
{
    struct clean_path path;
    struct place place;
    enum fail fail = path_clean(job->request->path.at, job->request->path.length, &path);
    if (fail == OK)
        fail = path_resolve(&path, (job->request->flags & STAT_NO_FOLLOW) != 0 ? 0 : PATH_FOLLOW, &place);
    if (fail != OK)
        return fail;
    fail = describe(job, &place, path.wants_directory);
    close(place.dir);
    return fail;
}
