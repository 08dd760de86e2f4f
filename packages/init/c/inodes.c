#include "inodes.h"

#include <stdlib.h>

enum { INODES_MAX = 1024 * 1024 };

struct inode_key {
    uint64_t device, inode; /* inode 0 is never a file's: an empty slot */
};

static struct inode_key *slot_of(struct inode_key *slots, size_t capacity, uint64_t device, uint64_t inode)
{
    size_t at = (size_t)((inode * 0x9E3779B97F4A7C15u) ^ device) & (capacity - 1);
    while (slots[at].inode != 0 && (slots[at].inode != inode || slots[at].device != device))
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static bool grow(struct inodes *set)
{
    size_t capacity = set->capacity == 0 ? 1024 : set->capacity * 2;
    struct inode_key *slots = capacity > 2 * INODES_MAX ? NULL : calloc(capacity, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->slots[i].inode != 0)
            *slot_of(slots, capacity, set->slots[i].device, set->slots[i].inode) = set->slots[i];
    free(set->slots);
    set->slots = slots;
    set->capacity = capacity;
    return true;
}

bool inodes_add(struct inodes *set, dev_t device, ino_t inode)
{
    bool room = set->count * 2 < set->capacity || grow(set);
    if (set->capacity == 0)
        return true;
    struct inode_key *slot = slot_of(set->slots, set->capacity, device, inode);
    if (slot->inode != 0)
        return false;
    if (room) {
        *slot = (struct inode_key){.device = device, .inode = inode};
        set->count++;
    }
    return true;
}

void inodes_free(struct inodes *set)
{
    free(set->slots);
    *set = (struct inodes){.slots = NULL};
}
