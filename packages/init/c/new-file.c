#include "new-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

int create_temporary(int dir, char name[TEMPORARY_NAME])
{
    for (int attempt = 0; attempt < 16; attempt++) {
        uint32_t random = 0;
        if (getrandom(&random, sizeof random, 0) != sizeof random)
            random = (uint32_t)getpid() * 2654435761u + (uint32_t)attempt;
        snprintf(name, TEMPORARY_NAME, ".berth-%08x.tmp", random);
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}
