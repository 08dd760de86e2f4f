/*
 * An archive on its way into the workspace.
 *
 *   stream ──gunzip──▶ tar ──▶ names ──▶ files and directories as they come, links last
 *
 * A check goes the same way and writes nothing, so that an archive with one bad name can leave nothing behind. Whatever a
 * name says, an entry is written through path.h, and so beneath a root.
 */
#ifndef BERTH_UNPACK_H
#define BERTH_UNPACK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "items.h"
#include "job.h"
#include "new-file.h"
#include "path.h"
#include "plan.h"
#include "tar.h"

/* The file that is being written. */
struct growing_file {
    int fd; /* -1: none, or its content is passed over */
    int dir;
    bool owns_dir;
    char name[NAME_MAX_BYTES + 1];
    char temporary[TEMPORARY_NAME]; /* "" for one that has its own name already */
    char path[PATH_MAX_BYTES + 1];
    bool has_mode, is_new;
    mode_t mode;
};

struct unpack {
    struct job *job;
    struct items items;
    struct tar tar;
    struct plan plan;
    struct growing_file file;
    const char *base; /* where names begin */
    bool checks;      /* writes nothing */
    bool each;        /* a refused entry does not end it; names may be absolute, beneath a root */
    bool stopped;     /* by a refused entry */
    uint64_t budget, entry_budget; /* what the workspace has room for */
    uint64_t count, bytes, unpacked;
    /* The directory of the last file, which is mostly that of the next. */
    int parent;
    size_t parent_root;
    char parent_path[PATH_MAX_BYTES + 1];
    mode_t umask;
};

/* unpack-names.c. False: the archive is refused, with its problem set. */
bool unpack_entry_path(struct unpack *unpack, const char *name, struct clean_path *out);
bool unpack_target(struct unpack *unpack, const struct tar_entry *entry, const struct clean_path *path,
                   char target[PATH_MAX_BYTES + 1]);
/* Facts that only the whole archive shows. */
bool unpack_check_plan(struct unpack *unpack);

/* unpack-write.c. False: nothing more is to be written. */
bool unpack_directory(struct unpack *unpack, const struct clean_path *path, const struct tar_entry *entry);
bool unpack_begin_file(struct unpack *unpack, const struct clean_path *path, const struct tar_entry *entry);
bool unpack_content(struct unpack *unpack, const uint8_t *bytes, size_t length);
bool unpack_links(struct unpack *unpack);
/* Takes away what was being written, and closes everything. */
void unpack_give_up(struct unpack *unpack);

#endif
