/*
 * Resolves the worker's paths beneath the workspace, or another of the roots that init was given, and never outside of them.
 *
 * Every component is opened relative to the directory before it and without following, symlinks are expanded by hand, and
 * `..` (which only a symlink's target may hold) goes back along the directories that are held open. A tenant that swaps a directory for a
 * symlink meanwhile changes which file is found, but never leads out of the roots.
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
    ROOTS_MAX = 4,
};

/* Adds a root. The first is the workspace. `dir` must stay valid. Returns an errno. */
int path_open_root(const char *dir);
int path_workspace_fd(void);
/* -1: there are fewer roots. */
int path_root_fd(size_t root);

/* A path without NUL, control bytes, `.`, `..` or doubled slashes, from its root; the root itself is "". */
struct clean_path {
    size_t root; /* the root that an absolute path names; otherwise the workspace */
    char text[PATH_MAX_BYTES + 1];
    bool wants_directory; /* it ended in a slash */
};
enum fail path_clean(const char *bytes, size_t length, struct clean_path *out);

/* The rest of an absolute path beneath one of the roots, or NULL. */
const char *path_below_root(const char *path, size_t *root);

enum path_option {
    PATH_FOLLOW = 1,       /* a symlink at the end is resolved too */
    PATH_MAKE_PARENTS = 2, /* missing directories on the way are made, where there is room */
};

/* Where a path leads: a name in a directory. The name is "" when it leads to the directory itself. Nothing needs to be there
 * under that name, but it was no symlink when PATH_FOLLOW was given: the caller opens it with O_NOFOLLOW. */
struct place {
    int dir; /* O_PATH; the caller closes it */
    char name[NAME_MAX_BYTES + 1];
};
enum fail path_resolve(const struct clean_path *path, int options, struct place *out);

/* Opens the directory a path leads to, O_PATH or for reading. */
enum fail path_open_directory(const struct clean_path *path, bool readable, int *fd);

#endif
