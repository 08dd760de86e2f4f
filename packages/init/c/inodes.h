/* Which inodes were counted already. Beyond a bound every name counts, which can only make a sum larger. */
#ifndef BERTH_INODES_H
#define BERTH_INODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct inodes {
    struct inode_key *slots;
    size_t capacity, count;
};

/* True the first time. */
bool inodes_add(struct inodes *set, dev_t device, ino_t inode);

void inodes_free(struct inodes *set);

#endif
