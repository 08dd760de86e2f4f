#include "rename.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_REPLACE 1u /* RENAME_NOREPLACE, which not every libc names */

int rename_exclusive(int from_dir, const char *from, int to_dir, const char *to)
{
    if (syscall(SYS_renameat2, from_dir, from, to_dir, to, NO_REPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    /* Also EINVAL for a directory moved below itself, which the plain rename will say again. */
    if (linkat(from_dir, from, to_dir, to, 0) == 0)
        return unlinkat(from_dir, from, 0) == 0 ? 0 : errno;
    if (errno != EPERM && errno != EACCES)
        return errno;
    /* A directory, which cannot be linked: an empty directory in the way is the only thing this could replace. */
    struct stat status;
    if (fstatat(to_dir, to, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return EEXIST;
    return renameat(from_dir, from, to_dir, to) == 0 ? 0 : errno;
}
