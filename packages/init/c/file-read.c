#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "bytes.h"
#include "job.h"
#include "path.h"

/* Sends at most the size that the file had when it was opened: a file that grows must not be read for ever. */
static enum fail send_range(struct job *job, int fd, uint64_t at, uint64_t bytes, uint64_t *sent, struct sha256 *hash)
{
    static uint8_t chunk[CHUNK];
    while (*sent < bytes) {
        ssize_t got = pread(fd, chunk, (size_t)min_u64(sizeof chunk, bytes - *sent), (off_t)(at + *sent));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failed(job, errno);
        if (got == 0)
            break;
        if (hash != NULL)
            sha256_add(hash, chunk, (size_t)got);
        if (!write_all(job->out, chunk, (size_t)got))
            return INTERRUPTED;
        *sent += (uint64_t)got;
    }
    return OK;
}

static enum fail read_open(struct job *job, int fd, const struct stat *status)
{
    const struct file_request *request = job->request;
    uint64_t size = (uint64_t)status->st_size;
    uint64_t bytes = request->offset < size ? size - request->offset : 0;
    if (request->has_length)
        bytes = min_u64(bytes, request->length);
    bool hashed = (request->flags & READ_HASH) != 0;
    struct sha256 hash;
    sha256_begin(&hash);
    uint64_t sent = 0;
    enum fail fail = send_range(job, fd, request->offset, bytes, &sent, hashed ? &hash : NULL);
    if (fail != OK)
        return fail;
    write_number(&job->done, DONE_SIZE, size);
    write_number(&job->done, DONE_BYTES, sent);
    write_number(&job->done, DONE_MODE, status->st_mode & 07777);
    write_number(&job->done, DONE_MTIME_MS, mtime_ms(status));
    if (hashed) {
        uint8_t digest[32];
        sha256_end(&hash, digest);
        write_bytes(&job->done, DONE_SHA256, digest, sizeof digest);
    }
    return OK;
}

enum fail file_read(struct job *job)
{
    struct clean_path path;
    struct place place;
    struct stat status;
    int fd = -1;
    enum fail fail = path_clean(job->request->path.at, job->request->path.length, &path);
    if (fail == OK && path.text[0] == 0)
        fail = INVALID_PATH;
    if (fail == OK)
        fail = path_resolve(&path, PATH_FOLLOW, &place);
    if (fail != OK)
        return fail;
    fail = open_regular(job, place.dir, place.name, O_RDONLY, &fd, &status);
    close(place.dir);
    if (fail != OK)
        return fail;
    fail = path.wants_directory ? NOT_A_DIRECTORY : read_open(job, fd, &status);
    close(fd);
    return fail;
}
