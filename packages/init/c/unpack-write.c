#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "room.h"
#include "unpack.h"

/* Reports that an entry was not made. False when that ends the unpacking. */
static bool refuse(struct unpack *unpack, const char *path, enum fail fail)
{
    items_add_refusal(&unpack->items, path, fail, fail_sentence(fail));
    unpack->stopped = !unpack->each;
    return unpack->each && !unpack->items.broken;
}

static enum fail make_directory(struct unpack *unpack, const struct place *place, const struct tar_entry *entry)
{
    /* Its owner must be able to fill it. */
    mode_t mode = entry->has_mode ? (mode_t)entry->mode | 0700 : 0755;
    if (place->name[0] == 0)
        return OK;
    struct stat status;
    if (fstatat(place->dir, place->name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return S_ISDIR(status.st_mode) ? OK : EXISTS;
    if (!room_take_directory())
        return QUOTA;
    if (mkdirat(place->dir, place->name, mode) != 0)
        return fail_from_errno(errno);
    /* mkdir cuts the mode by the umask; the archive's mode counts. */
    if ((mode & unpack->umask) != 0 && fchmodat(place->dir, place->name, mode, 0) != 0)
        return fail_from_errno(errno);
    return OK;
}

bool unpack_directory(struct unpack *unpack, const struct clean_path *path, const struct tar_entry *entry)
{
    struct place place;
    enum fail fail = path_resolve(path, PATH_FOLLOW | PATH_MAKE_PARENTS, &place);
    if (fail == OK) {
        fail = make_directory(unpack, &place, entry);
        close(place.dir);
    }
    return fail == OK || refuse(unpack, path->text, fail);
}

/* Opens the directory of a file, and keeps it for the files that follow. */
static enum fail find_parent(struct unpack *unpack, const struct clean_path *path, const char **name)
{
    const char *slash = strrchr(path->text, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path->text);
    *name = slash == NULL ? path->text : slash + 1;
    if (unpack->parent >= 0 && unpack->parent_root == path->root && strlen(unpack->parent_path) == length &&
        memcmp(unpack->parent_path, path->text, length) == 0)
        return OK;
    struct place place;
    enum fail fail = path_resolve(path, PATH_MAKE_PARENTS, &place);
    if (fail != OK)
        return fail;
    if (unpack->parent >= 0)
        close(unpack->parent);
    unpack->parent = place.dir;
    unpack->parent_root = path->root;
    memcpy(unpack->parent_path, path->text, length);
    unpack->parent_path[length] = 0;
    return OK;
}

/* Removes an existing file first, as tar does. Renaming over it would make the file system write the new one to disk at once, which takes a
 * millisecond. False when it is not a regular file, or there is no room. */
static bool remove_old(struct unpack *unpack, const char *name, uint64_t size)
{
    struct stat status;
    if (fstatat(unpack->parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
        return false;
    if (!room_take_bytes(size, (uint64_t)status.st_size))
        return false;
    return unlinkat(unpack->parent, name, 0) == 0;
}

/* Begins to replace a file, perhaps through a symlink to it. */
static enum fail begin_replacing(struct unpack *unpack, const struct clean_path *path, uint64_t size)
{
    struct growing_file *file = &unpack->file;
    struct place place;
    struct stat status;
    enum fail fail = path_resolve(path, PATH_FOLLOW | PATH_MAKE_PARENTS, &place);
    if (fail != OK)
        return fail;
    file->dir = place.dir;
    file->owns_dir = true;
    file->is_new = fstatat(place.dir, place.name, &status, AT_SYMLINK_NOFOLLOW) != 0;
    if (place.name[0] == 0 || (!file->is_new && S_ISDIR(status.st_mode)))
        return IS_A_DIRECTORY;
    if (!file->is_new && !S_ISREG(status.st_mode))
        return NOT_A_FILE;
    if (!room_take_bytes(size, file->is_new ? 0 : (uint64_t)status.st_size) || (file->is_new && !room_take_entry()))
        return QUOTA;
    if (!file->has_mode)
        file->mode = file->is_new ? 0644 : status.st_mode & 07777;
    memcpy(file->name, place.name, strlen(place.name) + 1);
    file->fd = create_temporary(file->dir, file->temporary);
    return file->fd < 0 ? fail_from_errno(errno) : OK;
}

static enum fail begin_new(struct unpack *unpack, const struct clean_path *path, uint64_t size)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    struct growing_file *file = &unpack->file;
    const char *name;
    enum fail fail = find_parent(unpack, path, &name);
    if (fail != OK)
        return fail;
    int fd = openat(unpack->parent, name, flags, file->mode);
    bool replaces = fd < 0 && errno == EEXIST && remove_old(unpack, name, size);
    if (replaces)
        fd = openat(unpack->parent, name, flags, file->mode);
    if (fd < 0)
        return errno == EEXIST ? begin_replacing(unpack, path, size) : fail_from_errno(errno);
    file->fd = fd;
    file->dir = unpack->parent;
    file->is_new = !replaces;
    memcpy(file->name, name, strlen(name) + 1);
    return replaces || (room_take_bytes(size, 0) && room_take_entry()) ? OK : QUOTA;
}

static void close_file(struct unpack *unpack, bool keep)
{
    struct growing_file *file = &unpack->file;
    if (file->fd >= 0) {
        close(file->fd);
        const char *name = file->temporary[0] != 0 ? file->temporary : file->name;
        if (!keep)
            unlinkat(file->dir, name, 0);
    }
    if (file->owns_dir)
        close(file->dir);
    file->fd = file->dir = -1;
    file->owns_dir = false;
    file->temporary[0] = 0;
}

static bool drop_file(struct unpack *unpack, enum fail fail)
{
    close_file(unpack, false);
    return refuse(unpack, unpack->file.path, fail);
}

bool unpack_begin_file(struct unpack *unpack, const struct clean_path *path, const struct tar_entry *entry)
{
    struct growing_file *file = &unpack->file;
    file->has_mode = entry->has_mode;
    file->mode = entry->has_mode ? (mode_t)entry->mode : 0644;
    memcpy(file->path, path->text, strlen(path->text) + 1);
    if (path->wants_directory)
        return drop_file(unpack, IS_A_DIRECTORY);
    /* With `each`, no reader sees a file half written. An archive as a whole is seen half unpacked anyway. */
    enum fail fail = unpack->each ? begin_replacing(unpack, path, entry->size) : begin_new(unpack, path, entry->size);
    return fail == OK || drop_file(unpack, fail);
}

static enum fail finish_file(struct unpack *unpack)
{
    struct growing_file *file = &unpack->file;
    bool chmods = file->temporary[0] != 0 || (file->mode & unpack->umask) != 0;
    if (chmods && fchmod(file->fd, file->mode) != 0)
        return fail_from_errno(errno);
    int fd = file->fd;
    /* Some file systems report a full disk only on close. */
    if (close(fd) != 0)
        return fail_from_errno(errno);
    file->fd = -1;
    if (file->temporary[0] != 0 && renameat(file->dir, file->temporary, file->dir, file->name) != 0) {
        enum fail fail = fail_from_errno(errno);
        unlinkat(file->dir, file->temporary, 0);
        return fail;
    }
    return OK;
}

bool unpack_content(struct unpack *unpack, const uint8_t *bytes, size_t length)
{
    struct growing_file *file = &unpack->file;
    if (file->fd < 0)
        return true;
    if (length > 0) {
        errno = 0;
        if (!write_all(file->fd, bytes, length))
            return drop_file(unpack, fail_from_errno(errno == 0 ? EIO : errno));
        unpack->bytes += length;
        return true;
    }
    enum fail fail = finish_file(unpack);
    if (fail != OK)
        return drop_file(unpack, fail);
    close_file(unpack, true);
    unpack->count++;
    return true;
}

static enum fail make_link(const struct plan_entry *entry)
{
    static struct clean_path path;
    struct place place, target = {.dir = -1};
    struct stat status;
    enum fail fail = path_clean(entry->path, strlen(entry->path), &path);
    if (fail == OK)
        fail = path_resolve(&path, PATH_MAKE_PARENTS, &place);
    if (fail != OK)
        return fail;
    if (entry->type == 'h' && (fail = path_clean(entry->target, strlen(entry->target), &path)) == OK)
        fail = path_resolve(&path, 0, &target);
    bool there = fstatat(place.dir, place.name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (fail == OK && there && S_ISDIR(status.st_mode))
        fail = IS_A_DIRECTORY;
    if (fail == OK && !there && !room_take_entry())
        fail = QUOTA;
    if (fail == OK && there && unlinkat(place.dir, place.name, 0) != 0)
        fail = fail_from_errno(errno);
    if (fail == OK && (entry->type == 'h' ? linkat(target.dir, target.name, place.dir, place.name, 0)
                                          : symlinkat(entry->target, place.dir, place.name)) != 0)
        fail = fail_from_errno(errno);
    if (target.dir >= 0)
        close(target.dir);
    close(place.dir);
    return fail;
}

bool unpack_links(struct unpack *unpack)
{
    for (size_t i = 0; i < unpack->plan.count; i++) {
        const struct plan_entry *entry = &unpack->plan.entries[i];
        if (entry->type != 'l' && entry->type != 'h')
            continue;
        enum fail fail = make_link(entry);
        if (fail == OK)
            unpack->count++;
        else if (!refuse(unpack, entry->path, fail))
            return false;
    }
    return true;
}

void unpack_give_up(struct unpack *unpack)
{
    close_file(unpack, false);
    if (unpack->parent >= 0)
        close(unpack->parent);
    unpack->parent = -1;
}
