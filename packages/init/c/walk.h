/*
 * Visits everything below a directory, without following symlinks and without a bound on depth.
 *
 * A directory is read to its end before any directory in it is entered. The first HELD levels keep their descriptor. From deeper ones the
 * walk goes back by `..`, and checks that it arrives at the same directory as before. Names of directories that are still to be entered are
 * kept in memory, up to PENDING_MAX bytes. Entries that vanish meanwhile are skipped.
 */
#ifndef BERTH_WALK_H
#define BERTH_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct walk_entry {
    int dir; /* the directory it is in */
    const char *name;
    char type;        /* f d l o */
    const char *path; /* from the workspace root; "" unless paths are wanted */
    size_t below;     /* offset in `path` of the part below the base */
    uint64_t depth;   /* 1 for entries of the base itself */
};

/* The mode was not changed. */
#define WALK_KEEP_MODE ((mode_t)-1)

enum walk_verdict { WALK_ON, WALK_SKIP /* do not enter this directory */, WALK_STOP };

struct walk {
    void *context;
    enum walk_verdict (*visit)(void *context, const struct walk_entry *entry);
    /* Called after everything in a directory, or (with an errno) when it could not be entered. May be NULL. */
    enum walk_verdict (*left)(void *context, int parent, const char *name, int error);
    const char *base_path; /* from the workspace root; NULL: paths are not wanted, and their length is no bound */
    uint64_t max_depth;
    /* The owner's permissions that each directory gets while it is walked, if it lacks them: a tenant can remove them to keep its files from
     * being counted or removed. 0 changes no modes. */
    mode_t pry;
    /* Before a mode is changed: waits until no other process walks the tree and changes modes. NULL: there is none. */
    void (*before_prying)(void *context);
    /* Set by the walk. */
    bool incomplete; /* paths too long to name, too many names to hold, or a directory moved away meanwhile */
};

/* Opens a directory to walk. -1 with errno. */
int walk_open(const struct walk *walk, int dir, const char *name, mode_t *restore);

/* `base` is readable and is closed. `restore` is as walk_open gave it. Returns an errno when the base itself cannot be read. */
int walk_below(int base, mode_t restore, struct walk *walk);

#endif
