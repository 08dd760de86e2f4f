#include "oom.h"

#include <fcntl.h>
#include <unistd.h>

#define RAISED "500"

static int fd = -1;
static char original[16];
static ssize_t original_length;

void oom_open(void)
{
    fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    original_length = fd < 0 ? 0 : read(fd, original, sizeof original);
}

static void set(const char *score, ssize_t length)
{
    if (fd >= 0 && length > 0 && pwrite(fd, score, (size_t)length, 0) < 0) {
        /* the score stays */
    }
}

void oom_raise(void)
{
    set(RAISED, sizeof RAISED - 1);
}

void oom_restore(void)
{
    set(original, original_length);
}
