#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "bytes.h"
#include "room.h"

enum fail failed(struct job *job, int error)
{
    job->error = error;
    return fail_from_errno(error);
}

bool write_all(int fd, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    while (length > 0) {
        ssize_t wrote = write(fd, at, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        at += wrote;
        length -= (size_t)wrote;
    }
    return true;
}

enum fail open_regular(struct job *job, int dir, const char *name, int flags, int *fd, struct stat *status)
{
    *fd = -1;
    if (name[0] == 0)
        return IS_A_DIRECTORY;
    int opened = openat(dir, name, flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
    if (opened < 0)
        return failed(job, errno);
    enum fail fail = OK;
    if (fstat(opened, status) != 0)
        fail = failed(job, errno);
    else if (!S_ISREG(status->st_mode))
        fail = S_ISDIR(status->st_mode) ? IS_A_DIRECTORY : NOT_A_FILE;
    if (fail != OK)
        close(opened);
    else
        *fd = opened;
    return fail;
}

enum fail hash_file(struct job *job, int fd, uint64_t limit, uint8_t out[32])
{
    static uint8_t chunk[CHUNK];
    struct sha256 hash;
    sha256_begin(&hash);
    for (uint64_t at = 0; at < limit;) {
        ssize_t got = pread(fd, chunk, (size_t)min_u64(sizeof chunk, limit - at), (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failed(job, errno);
        if (got == 0)
            break;
        sha256_add(&hash, chunk, (size_t)got);
        at += (uint64_t)got;
    }
    sha256_end(&hash, out);
    return OK;
}

char type_letter(mode_t mode)
{
    return S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : 'o';
}

/* The last a JavaScript date can hold, 275,760 CE. */
static const time_t LATEST_SECOND = 8640000000000;

uint64_t mtime_ms(const struct stat *status)
{
    /* Numbers on the wire have no sign, and a tenant may set any time it likes. */
    if (status->st_mtim.tv_sec < 0)
        return 0;
    if (status->st_mtim.tv_sec > LATEST_SECOND)
        return (uint64_t)LATEST_SECOND * 1000;
    return (uint64_t)status->st_mtim.tv_sec * 1000 + (uint64_t)status->st_mtim.tv_nsec / 1000000;
}

static enum fail operate(struct job *job)
{
    switch (job->request->op) {
    case OP_READ: return file_read(job);
    case OP_WRITE: return file_write(job);
    case OP_STAT: return file_stat(job);
    case OP_LIST: return file_list(job);
    case OP_REMOVE: return file_remove(job);
    case OP_MOVE: return file_move(job);
    case OP_MKDIR: return file_mkdir(job);
    case OP_GLOB: return file_glob(job);
    case OP_GREP: return file_grep(job);
    case OP_USAGE: return file_usage(job);
    case OP_UNPACK: return file_unpack(job);
    case OP_PACK: return file_pack(job);
    }
    return BAD_REQUEST;
}

size_t job_run(const uint8_t *payload, size_t length, int in, int out, uint8_t result[RESULT_MAX])
{
    struct file_request request;
    struct job job = {
        .request = &request,
        .payload = payload,
        .payload_length = length,
        .in = in,
        .out = out,
        .done = {.buffer = result + 1, .capacity = RESULT_MAX - 1},
    };
    enum fail fail = file_request_parse(payload, length, &request);
    if (fail == OK) {
        room_begin(&request);
        fail = operate(&job);
    }
    if (fail == OK) {
        result[0] = T_DONE;
        return 1 + job.done.length;
    }
    result[0] = T_FAIL;
    return 1 + fail_payload(result + 1, fail, job.message, job.error);
}
