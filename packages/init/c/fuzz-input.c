#include "fuzz-input.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tar.h"

enum { NOBODY = 65534 };

static uint64_t state;

void fuzz_seed(const char *text)
{
    state = strtoull(text, NULL, 10) * 0x9E3779B97F4A7C15u + 1;
}

uint64_t fuzz_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

size_t fuzz_below(size_t bound)
{
    return bound == 0 ? 0 : (size_t)(fuzz_random() % bound);
}

void fuzz_mutate_archive(uint8_t *bytes, size_t *length)
{
    for (size_t times = fuzz_below(6); times > 0 && *length > 0; times--) {
        size_t at = fuzz_below(*length);
        switch (fuzz_below(4)) {
        case 0: bytes[at] = (uint8_t)fuzz_random(); break;
        case 1: bytes[at] ^= (uint8_t)(1u << fuzz_below(8)); break;
        case 2: bytes[at] = (uint8_t)"07\0xgLK\x80\xFF="[fuzz_below(10)]; break;
        case 3:
            if (fuzz_below(8) == 0)
                *length = at;
            break;
        }
    }
}

void fuzz_mend_sums(uint8_t *bytes, size_t length)
{
    for (size_t at = 0; at + TAR_BLOCK <= length; at += TAR_BLOCK) {
        if (memcmp(bytes + at + 257, "ustar", 5) != 0)
            continue;
        unsigned sum = 0;
        memset(bytes + at + 148, ' ', 8);
        for (size_t i = 0; i < TAR_BLOCK; i++)
            sum += bytes[at + i];
        char text[9];
        snprintf(text, sizeof text, "%06o%c ", sum & 0777777, 0);
        memcpy(bytes + at + 148, text, 8);
    }
}

int fuzz_drop_root(const char *dir)
{
    if (geteuid() != 0)
        return 0;
    bool dropped = chown(dir, NOBODY, NOBODY) == 0 && setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0;
    return dropped ? 0 : errno;
}
