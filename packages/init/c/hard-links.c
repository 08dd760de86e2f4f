#include "hard-links.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct hard_link *slot_of(const struct hard_links *links, ino_t inode)
{
    size_t at = (size_t)((uint64_t)inode * 0x9e3779b97f4a7c15u >> 20) & (links->capacity - 1);
    while (links->slots[at].path != NULL && links->slots[at].inode != inode)
        at = (at + 1) & (links->capacity - 1);
    return &links->slots[at];
}

const char *hard_links_find(const struct hard_links *links, ino_t inode)
{
    return links->capacity == 0 ? NULL : slot_of(links, inode)->path;
}

static bool grow(struct hard_links *links)
{
    struct hard_links more = {.capacity = links->capacity == 0 ? 256 : links->capacity * 2, .used = links->used};
    more.slots = calloc(more.capacity, sizeof *more.slots);
    if (more.slots == NULL)
        return false;
    for (size_t i = 0; i < links->capacity; i++)
        if (links->slots[i].path != NULL)
            *slot_of(&more, links->slots[i].inode) = links->slots[i];
    free(links->slots);
    *links = more;
    return true;
}

bool hard_links_add(struct hard_links *links, ino_t inode, const char *path)
{
    if (links->used * 2 >= links->capacity && !grow(links))
        return false;
    struct hard_link *slot = slot_of(links, inode);
    slot->inode = inode;
    slot->path = strdup(path);
    if (slot->path != NULL)
        links->used++;
    return slot->path != NULL;
}
