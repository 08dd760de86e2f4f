/*
 * Paths of the worker, resolved beneath the workspace and never out of it.
 *
 * Every component is opened relative to the directory before it and without following, symlinks are expanded by hand, and
 * `..` (which only a symlink's target may hold) goes back along the directories already held. A directory swapped for a
 * symlink in the middle of this changes what is found, never where it may be.
 */
#ifndef BERTH_PATH_H
#define BERTH_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "fail.h"

enum {
    PATH_MAX_BYTES = 4095,
    NAME_MAX_BYTES = 255,
    LINKS_MAX = 40,
};

/* Opens the workspace; `dir` must stay valid. Returns an errno. */
int path_open_workspace(const char *dir);
int path_workspace_fd(void);

/* A path without NUL, control bytes, `.`, `..` or doubled slashes, from the workspace root; the root itself is "". */
struct clean_path {
    char text[PATH_MAX_BYTES + 1];
    bool wants_directory; /* it ended in a slash */
};
enum fail path_clean(const char *bytes, size_t length, struct clean_path *out);

enum path_option {
    PATH_FOLLOW = 1,       /* a symlink at the end is resolved too */
    PATH_MAKE_PARENTS = 2, /* missing directories on the way are made */
};

/* Where a path leads: a name in a directory. The name is "" when it leads to the directory itself. Nothing needs to be there
 * under that name, but it was no symlink when PATH_FOLLOW was given: whoever opens it says O_NOFOLLOW. */
struct place {
    int dir; /* O_PATH; the caller closes it */
    char name[NAME_MAX_BYTES + 1];
};
enum fail path_resolve(const struct clean_path *path, int options, struct place *out);

/* Opens the directory a path leads to, O_PATH or for reading. */
enum fail path_open_directory(const struct clean_path *path, bool readable, int *fd);

#endif
