/* Files of one tree that have several names, and the first name under which each was found. */
#ifndef BERTH_HARD_LINKS_H
#define BERTH_HARD_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct hard_link {
    ino_t inode;
    char *path; /* NULL: free */
};

struct hard_links {
    struct hard_link *slots;
    size_t used, capacity; /* a power of two */
};

/* NULL: the inode was not found before. */
const char *hard_links_find(const struct hard_links *links, ino_t inode);

/* False without memory. */
bool hard_links_add(struct hard_links *links, ino_t inode, const char *path);

#endif
