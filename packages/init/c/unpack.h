/*
 * Unpacks an archive into the workspace.
 *
 *   stream ──gunzip──▶ tar ──▶ names ──▶ files and directories as they come, links last
 *
 * A check goes the same way and writes nothing. So an archive with one bad name can be refused before anything is written. All entries are
 * written through path.h, and so beneath a root.
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
    int fd; /* -1: none, or its content is skipped */
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
    const char *base; /* the directory to which names are relative */
    bool checks;      /* writes nothing */
    bool each;        /* a refused entry does not end it; names may be absolute, beneath a root */
    bool stopped;     /* by a refused entry */
    uint64_t count, bytes, unpacked;
    /* The directory of the last file. The next file is mostly in the same one. */
    int parent;
    size_t parent_root;
    char parent_path[PATH_MAX_BYTES + 1];
    mode_t umask;
};

/* unpack-names.c. False: the archive is refused, with its problem set. */
bool unpack_entry_path(struct unpack *unpack, const char *name, struct clean_path *out);
bool unpack_target(struct unpack *unpack, const struct tar_entry *entry, const struct clean_path *path,
                   char target[PATH_MAX_BYTES + 1]);
/* Checks that need the whole archive. */
bool unpack_check_plan(struct unpack *unpack);

/* unpack-write.c. False: nothing more is to be written. */
bool unpack_directory(struct unpack *unpack, const struct clean_path *path, const struct tar_entry *entry);
bool unpack_begin_file(struct unpack *unpack, const struct clean_path *path, const struct tar_entry *entry);
bool unpack_content(struct unpack *unpack, const uint8_t *bytes, size_t length);
bool unpack_links(struct unpack *unpack);
/* Removes the file that was being written, and closes all descriptors. */
void unpack_give_up(struct unpack *unpack);

#endif
