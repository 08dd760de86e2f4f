/*
 * Everything below a directory, without following symlinks and without bound on depth.
 *
 * A directory is read to its end before any directory in it is entered, so what is shallow comes first. The first HELD
 * levels keep their descriptor; deeper ones are left by `..`, which is believed only when it is the directory it was. Names
 * still to be entered are kept in memory, up to PENDING_MAX bytes. What vanishes while walking is passed over.
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
    size_t below;     /* where in `path` the part below the base begins */
    uint64_t depth;   /* 1 for what is in the base itself */
};

/* No mode to give back. */
#define WALK_KEEP_MODE ((mode_t)-1)

enum walk_verdict { WALK_ON, WALK_SKIP /* do not enter this directory */, WALK_STOP };

struct walk {
    void *context;
    enum walk_verdict (*visit)(void *context, const struct walk_entry *entry);
    /* After everything in a directory, or (with an errno) when it could not be entered. NULL when of no interest. */
    enum walk_verdict (*left)(void *context, int parent, const char *name, int error);
    const char *base_path; /* from the workspace root; NULL: paths are not wanted, and their length is no bound */
    uint64_t max_depth;
    /* Owner's permissions a directory is given for the time it is walked, where it lacks them: a tenant can take them away to
     * keep its files from being counted or removed. 0 leaves modes alone. */
    mode_t pry;
    /* Set by the walk. */
    bool incomplete; /* paths too long to name, too many names to hold, or a directory moved away meanwhile */
};

/* Opens a directory to walk. -1 with errno. */
int walk_open(const struct walk *walk, int dir, const char *name, mode_t *restore);

/* `base` is readable and is closed. `restore` is as walk_open gave it. Returns an errno when the base itself cannot be read. */
int walk_below(int base, mode_t restore, struct walk *walk);

#endif
