#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "job.h"
#include "new-file.h"
#include "path.h"
#include "rename.h"
#include "room.h"

/* Where a write goes, and the file that was there when it began. */
struct target {
    struct place place;
    bool existed;
    uint64_t old_size;
    mode_t mode;
};

static enum fail find_target(struct job *job, struct target *target)
{
    const struct file_request *request = job->request;
    struct clean_path path;
    target->place.dir = -1;
    enum fail fail = path_clean(request->path.at, request->path.length, &path);
    if (fail == OK && path.text[0] == 0)
        fail = INVALID_PATH;
    if (fail == OK && path.wants_directory)
        fail = IS_A_DIRECTORY;
    int parents = (request->flags & WRITE_PARENTS) != 0 ? PATH_MAKE_PARENTS : 0;
    if (fail == OK)
        fail = path_resolve(&path, PATH_FOLLOW | parents, &target->place);
    if (fail != OK)
        return fail;
    if (target->place.name[0] == 0)
        return IS_A_DIRECTORY;
    struct stat status;
    if (fstatat(target->place.dir, target->place.name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISDIR(status.st_mode))
            return IS_A_DIRECTORY;
        if (!S_ISREG(status.st_mode))
            return NOT_A_FILE;
        if ((request->flags & WRITE_EXCLUSIVE) != 0)
            return EXISTS;
        target->existed = true;
        target->old_size = (uint64_t)status.st_size;
        target->mode = status.st_mode & 07777;
    } else if (errno != ENOENT) {
        return failed(job, errno);
    }
    if (request->has_mode)
        target->mode = (mode_t)(request->mode & 07777);
    else if (!target->existed)
        target->mode = 0644;
    return OK;
}

/* By apparent size. A write that replaces a file frees the old bytes, one that appends does not. */
static bool has_room(const struct file_request *request, const struct target *target)
{
    uint64_t kept = (request->flags & WRITE_APPEND) != 0 ? 0 : target->old_size;
    return room_take_bytes(request->size, kept) && (target->existed || room_take_entry());
}

static enum fail check_match(struct job *job, const struct target *target)
{
    if (!job->request->has_sha256)
        return OK;
    struct stat status;
    int fd;
    enum fail fail = open_regular(job, target->place.dir, target->place.name, O_RDONLY, &fd, &status);
    if (fail == NOT_FOUND)
        return MISMATCH;
    if (fail != OK)
        return fail;
    uint8_t digest[32];
    fail = hash_file(job, fd, UINT64_MAX, digest);
    close(fd);
    if (fail == OK && memcmp(digest, job->request->sha256, sizeof digest) != 0)
        fail = MISMATCH;
    return fail;
}

/* Copies STDIN into the file: exactly the announced number of bytes, then its end. */
static enum fail receive(struct job *job, int fd, uint8_t digest[32])
{
    static uint8_t chunk[CHUNK];
    struct sha256 hash;
    sha256_begin(&hash);
    for (uint64_t left = job->request->size;;) {
        ssize_t got = read(job->in, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failed(job, errno);
        if (got == 0 && left > 0)
            return SHORT;
        if (got == 0)
            break;
        if ((uint64_t)got > left)
            return SHORT;
        errno = 0;
        if (!write_all(fd, chunk, (size_t)got))
            return failed(job, errno == 0 ? EIO : errno);
        sha256_add(&hash, chunk, (size_t)got);
        left -= (uint64_t)got;
    }
    sha256_end(&hash, digest);
    return OK;
}

static void report(struct job *job, uint64_t size, bool created, const uint8_t digest[32])
{
    write_number(&job->done, DONE_SIZE, size);
    write_number(&job->done, DONE_CREATED, created);
    room_report(&job->done);
    write_bytes(&job->done, DONE_SHA256, digest, 32);
}

static enum fail append(struct job *job, struct target *target)
{
    struct stat status;
    uint8_t digest[32];
    int fd;
    enum fail fail = check_match(job, target);
    if (fail != OK)
        return fail;
    fail = open_regular(job, target->place.dir, target->place.name, O_WRONLY | O_APPEND | O_CREAT, &fd, &status);
    if (fail != OK)
        return fail;
    if (!target->existed || job->request->has_mode)
        fchmod(fd, target->mode);
    fail = receive(job, fd, digest);
    if (fail == OK && fstat(fd, &status) != 0)
        fail = failed(job, errno);
    if (fail == OK)
        report(job, (uint64_t)status.st_size, !target->existed, digest);
    close(fd);
    return fail;
}

/* The rename makes the write visible. The match is checked right before it, and nothing can fail after it. */
static enum fail commit(struct job *job, struct target *target, const char *temporary)
{
    int dir = target->place.dir;
    enum fail fail = check_match(job, target);
    if (fail != OK)
        return fail;
    bool exclusive = (job->request->flags & WRITE_EXCLUSIVE) != 0;
    int error = exclusive ? rename_exclusive(dir, temporary, dir, target->place.name)
                          : (renameat(dir, temporary, dir, target->place.name) == 0 ? 0 : errno);
    return error == 0 ? OK : failed(job, error);
}

static enum fail replace(struct job *job, struct target *target)
{
    char temporary[TEMPORARY_NAME];
    uint8_t digest[32];
    int fd = create_temporary(target->place.dir, temporary);
    if (fd < 0)
        return failed(job, errno);
    enum fail fail = receive(job, fd, digest);
    if (fail == OK && fchmod(fd, target->mode) != 0)
        fail = failed(job, errno);
    /* Some file systems report a full disk only on close. */
    if (close(fd) != 0 && fail == OK)
        fail = failed(job, errno);
    if (fail == OK)
        fail = commit(job, target, temporary);
    if (fail != OK) {
        unlinkat(target->place.dir, temporary, 0);
        return fail;
    }
    report(job, job->request->size, !target->existed, digest);
    return OK;
}

enum fail file_write(struct job *job)
{
    struct target target = {.existed = false};
    enum fail fail = find_target(job, &target);
    if (fail == OK && !has_room(job->request, &target))
        fail = QUOTA;
    if (fail == OK)
        fail = (job->request->flags & WRITE_APPEND) != 0 ? append(job, &target) : replace(job, &target);
    if (target.place.dir >= 0)
        close(target.place.dir);
    return fail;
}
