#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "tool.h"
#include "walk.h"

/* Passes over the tree: some file systems forget entries while others are deleted. */
enum { PASSES = 5 };

struct clearing {
    uint64_t removed;
    int error;
};

static void note(struct clearing *clearing, int result)
{
    if (result == 0)
        clearing->removed++;
    else if (errno != ENOENT && clearing->error == 0)
        clearing->error = errno;
}

static enum walk_verdict met(void *context, const struct walk_entry *entry)
{
    if (entry->type != 'd')
        note(context, unlinkat(entry->dir, entry->name, 0));
    return WALK_ON;
}

static enum walk_verdict left(void *context, int parent, const char *name, int error)
{
    (void)error; /* a directory that could not be entered may still be empty */
    note(context, unlinkat(parent, name, AT_REMOVEDIR));
    return WALK_ON;
}

int clear_main(const char *path)
{
    struct clearing clearing = {.removed = 0};
    for (int pass = 0; pass < PASSES; pass++) {
        uint64_t before = clearing.removed;
        clearing.error = 0;
        struct walk walk = {.context = &clearing, .visit = met, .left = left, .max_depth = UINT64_MAX, .pry = 0700};
        mode_t restore;
        int fd = walk_open(&walk, AT_FDCWD, path, &restore);
        if (fd < 0)
            return tool_failed(errno, "");
        int error = walk_below(fd, restore, &walk);
        if (error != 0)
            return tool_failed(error, "");
        if (clearing.removed == before && clearing.error == 0 && !walk.incomplete) {
            printf("{\"removed\":%" PRIu64 "}\n", clearing.removed);
            return 0;
        }
    }
    return tool_failed(clearing.error == 0 ? ENOTEMPTY : clearing.error, "");
}
