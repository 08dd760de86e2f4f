#include "rename.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_REPLACE 1u /* RENAME_NOREPLACE, which not every libc defines */

int rename_exclusive(int from_dir, const char *from, int to_dir, const char *to)
{
    if (syscall(SYS_renameat2, from_dir, from, to_dir, to, NO_REPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    /* EINVAL also means a directory that is moved below itself: the plain rename fails with it again. */
    if (linkat(from_dir, from, to_dir, to, 0) == 0)
        return unlinkat(from_dir, from, 0) == 0 ? 0 : errno;
    if (errno != EPERM && errno != EACCES)
        return errno;
    /* A directory cannot be linked. The plain rename could replace only an empty directory, which is refused here. */
    struct stat status;
    if (fstatat(to_dir, to, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return EEXIST;
    return renameat(from_dir, from, to_dir, to) == 0 ? 0 : errno;
}
