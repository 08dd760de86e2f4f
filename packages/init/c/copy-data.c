#include "copy-data.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SEEK_DATA
#define SEEK_DATA 3
#define SEEK_HOLE 4
#endif

/* FICLONE of linux/fs.h, a header that musl does not have. */
#define SHARE _IOW(0x94, 9, int)

enum { CHUNK_BYTES = 256 * 1024 };

static int copy_by_hand(int from, int to, off_t at, off_t end)
{
    static char buffer[CHUNK_BYTES];
    while (at < end) {
        size_t want = end - at < CHUNK_BYTES ? (size_t)(end - at) : CHUNK_BYTES;
        ssize_t got = pread(from, buffer, want, at);
        if (got <= 0)
            return got == 0 ? 0 : errno;
        for (ssize_t done = 0; done < got;) {
            ssize_t wrote = pwrite(to, buffer + done, (size_t)(got - done), at + done);
            if (wrote < 0)
                return errno;
            done += wrote;
        }
        at += got;
    }
    return 0;
}

/* Copies small files by one read and one write. The kernel copies large ones, without a buffer of ours. */
static int copy_range(int from, int to, off_t at, off_t end)
{
    while (end - at > CHUNK_BYTES) {
        off_t in = at, out = at;
        long got = syscall(SYS_copy_file_range, from, &in, to, &out, (size_t)(end - at), 0);
        if (got == 0)
            return 0;
        if (got < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
            return errno;
        if (got < 0)
            break;
        at = in;
    }
    return copy_by_hand(from, to, at, end);
}

static int copy_sparse(int from, int to, off_t size)
{
    for (off_t at = 0; at < size;) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0)
            return errno == ENXIO ? 0 : copy_range(from, to, at, size);
        off_t hole = lseek(from, data, SEEK_HOLE);
        if (hole < 0)
            hole = size;
        int error = copy_range(from, to, data, hole < size ? hole : size);
        if (error != 0)
            return error;
        at = hole;
    }
    return 0;
}

int copy_data(int from, int to, const struct stat *status, struct copy_counts *counts)
{
    off_t size = status->st_size;
    if (size == 0)
        return 0;
    counts->bytes += (uint64_t)size;
    if (!counts->cannot_share) {
        if (syscall(SYS_ioctl, to, (unsigned long)SHARE, from) == 0) {
            counts->shared++;
            return 0;
        }
        counts->cannot_share = errno == EOPNOTSUPP || errno == EXDEV || errno == ENOTTY || errno == EINVAL;
        if (errno == ENOSPC || errno == EDQUOT)
            return errno;
    }
    counts->copied++;
    int error = status->st_blocks * 512 < size ? copy_sparse(from, to, size) : copy_range(from, to, 0, size);
    return error == 0 && ftruncate(to, size) != 0 ? errno : error;
}
