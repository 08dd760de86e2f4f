#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "path.h"

enum {
    HELD = 64,
    PENDING_MAX = 64 * 1024 * 1024,
};

struct kernel_dirent {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

struct level {
    int fd; /* -1: closed, to be opened again by `..` */
    dev_t device;
    ino_t inode;
    mode_t restore; /* the mode to set again at the end, or WALK_KEEP_MODE */
    size_t path_length;
    size_t names, next, end; /* in state.names: all of this level's, the one to enter next, one past the last */
};

struct state {
    struct walk *walk;
    struct level *levels;
    size_t depth, capacity; /* levels[depth] is the one being worked on */
    char *names;
    size_t names_used, names_capacity;
    char path[PATH_MAX_BYTES + 1];
    size_t below;
};

static bool remember(struct state *state, const char *name)
{
    size_t size = strlen(name) + 1;
    if (state->names_used + size > state->names_capacity) {
        size_t more = state->names_capacity == 0 ? 65536 : state->names_capacity * 2;
        char *grown = more > PENDING_MAX ? NULL : realloc(state->names, more);
        if (grown == NULL)
            return false;
        state->names = grown;
        state->names_capacity = more;
    }
    memcpy(state->names + state->names_used, name, size);
    state->names_used += size;
    return true;
}

static char type_of(int dir, const struct kernel_dirent *entry)
{
    switch (entry->type) {
    case DT_REG: return 'f';
    case DT_DIR: return 'd';
    case DT_LNK: return 'l';
    case DT_UNKNOWN: break;
    default: return 'o';
    }
    struct stat status;
    if (fstatat(dir, entry->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    return S_ISREG(status.st_mode) ? 'f' : S_ISDIR(status.st_mode) ? 'd' : S_ISLNK(status.st_mode) ? 'l' : 'o';
}

/* Appends `name` to the level's path. False when the result would be longer than any path that init accepts. */
static bool extend_path(struct state *state, const struct level *level, const char *name)
{
    if (state->walk->base_path == NULL)
        return true;
    size_t at = level->path_length, size = strlen(name);
    if (at + 1 + size > PATH_MAX_BYTES)
        return false;
    if (at > 0)
        state->path[at++] = '/';
    memcpy(state->path + at, name, size + 1);
    return true;
}

static enum walk_verdict meet(struct state *state, struct level *level, const struct kernel_dirent *raw)
{
    struct walk *walk = state->walk;
    if (strcmp(raw->name, ".") == 0 || strcmp(raw->name, "..") == 0)
        return WALK_ON;
    if (!extend_path(state, level, raw->name)) {
        walk->incomplete = true;
        return WALK_ON;
    }
    struct walk_entry entry = {.dir = level->fd,
                               .name = raw->name,
                               .type = type_of(level->fd, raw),
                               .path = walk->base_path == NULL ? "" : state->path,
                               .below = state->below,
                               .depth = state->depth + 1};
    if (entry.type == 0)
        return WALK_ON;
    enum walk_verdict verdict = walk->visit(walk->context, &entry);
    if (verdict == WALK_ON && entry.type == 'd' && entry.depth < walk->max_depth && !remember(state, raw->name))
        walk->incomplete = true;
    return verdict;
}

/* Returns an errno, or -1 when the visitor stopped the walk. */
static int read_level(struct state *state, struct level *level)
{
    static _Alignas(struct kernel_dirent) char buffer[32768];
    level->names = state->names_used;
    int result = 0;
    for (;;) {
        long got = syscall(SYS_getdents64, level->fd, buffer, sizeof buffer);
        if (got < 0)
            result = errno;
        if (got <= 0)
            break;
        for (long at = 0; at < got && result == 0;) {
            struct kernel_dirent *entry = (struct kernel_dirent *)(void *)(buffer + at);
            at += entry->size;
            if (meet(state, level, entry) == WALK_STOP)
                result = -1;
        }
        if (result != 0)
            break;
    }
    level->next = level->names;
    level->end = state->names_used;
    return result;
}

static bool has_all(const struct walk *walk, int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && (status.st_mode & walk->pry) == walk->pry;
}

int walk_open(const struct walk *walk, int dir, const char *name, mode_t *restore)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat status;
    *restore = WALK_KEEP_MODE;
    int fd = openat(dir, name, flags);
    if (walk->pry == 0 || (fd < 0 && errno != EACCES) || (fd >= 0 && has_all(walk, fd)))
        return fd;
    if (walk->before_prying != NULL) {
        /* What another has changed for a moment is as its owner left it by then. */
        walk->before_prying(walk->context);
        if (fd >= 0)
            close(fd);
        fd = openat(dir, name, flags);
    }
    if (fd >= 0) {
        if (fstat(fd, &status) == 0 && (status.st_mode & walk->pry) != walk->pry &&
            fchmod(fd, (status.st_mode & 07777) | walk->pry) == 0)
            *restore = status.st_mode & 07777;
        return fd;
    }
    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode) ||
        fchmodat(dir, name, (status.st_mode & 07777) | walk->pry, 0) != 0) {
        errno = EACCES;
        return -1;
    }
    *restore = status.st_mode & 07777;
    return openat(dir, name, flags);
}

static void leave(struct level *level)
{
    if (level->fd < 0)
        return;
    if (level->restore != WALK_KEEP_MODE)
        fchmod(level->fd, level->restore);
    close(level->fd);
}

static bool push(struct state *state, int fd, mode_t restore)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return false;
    size_t depth = state->levels == NULL ? 0 : state->depth + 1;
    if (depth >= state->capacity) {
        size_t more = state->capacity == 0 ? 256 : state->capacity * 2;
        struct level *grown = realloc(state->levels, more * sizeof *grown);
        if (grown == NULL)
            return false;
        state->levels = grown;
        state->capacity = more;
    }
    state->levels[depth] = (struct level){.fd = fd, .device = status.st_dev, .inode = status.st_ino, .restore = restore};
    state->levels[depth].path_length = state->walk->base_path == NULL ? 0 : strlen(state->path);
    if (depth > HELD) {
        close(state->levels[depth - 1].fd);
        state->levels[depth - 1].fd = -1;
    }
    state->depth = depth;
    return true;
}

/* Goes back to the level above. If a tenant has moved the directory, goes back to the deepest level whose descriptor was kept. */
static void pop(struct state *state)
{
    struct level *child = &state->levels[state->depth], *parent = child - 1;
    state->names_used = child->names;
    state->depth--;
    if (parent->fd < 0) {
        struct stat status;
        int fd = openat(child->fd, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == parent->device && status.st_ino == parent->inode) {
            parent->fd = fd;
        } else {
            if (fd >= 0)
                close(fd);
            state->walk->incomplete = true;
            while (state->levels[state->depth].fd < 0)
                state->names_used = state->levels[state->depth--].names;
        }
    }
    leave(child);
}

static enum walk_verdict report_left(struct state *state, const char *name, int error)
{
    struct walk *walk = state->walk;
    return walk->left == NULL ? WALK_ON : walk->left(walk->context, state->levels[state->depth].fd, name, error);
}

/* The name last entered from this level. */
static const char *entered_name(const struct state *state, const struct level *level)
{
    const char *last = state->names + level->next - 1;
    while (last > state->names + level->names && last[-1] != 0)
        last--;
    return last;
}

/* Enters the next directory of the deepest level, or leaves the level when there is none. */
static int advance(struct state *state)
{
    struct level *level = &state->levels[state->depth];
    if (level->next == level->end) {
        size_t depth = state->depth;
        pop(state);
        if (state->depth + 1 != depth)
            return 0; /* a directory was moved meanwhile */
        return report_left(state, entered_name(state, level - 1), 0) == WALK_STOP ? -1 : 0;
    }
    const char *name = state->names + level->next;
    level->next += strlen(name) + 1;
    mode_t restore;
    int fd = walk_open(state->walk, level->fd, name, &restore);
    if (fd < 0)
        return errno != ENOENT && report_left(state, name, errno) == WALK_STOP ? -1 : 0;
    extend_path(state, level, name);
    if (!push(state, fd, restore)) {
        close(fd);
        state->walk->incomplete = true;
        return 0;
    }
    int result = read_level(state, &state->levels[state->depth]);
    if (result > 0)
        state->walk->incomplete = true;
    return result < 0 ? -1 : 0;
}

int walk_below(int base, mode_t restore, struct walk *walk)
{
    static struct state state;
    memset(&state, 0, sizeof state);
    state.walk = walk;
    if (walk->base_path != NULL)
        memcpy(state.path, walk->base_path, strlen(walk->base_path) + 1);
    state.below = walk->base_path == NULL || walk->base_path[0] == 0 ? 0 : strlen(walk->base_path) + 1;
    if (!push(&state, base, restore)) {
        close(base);
        return ENOMEM;
    }
    int result = read_level(&state, &state.levels[0]);
    while (result == 0 && (state.depth > 0 || state.levels[0].next < state.levels[0].end))
        result = advance(&state);
    for (size_t i = 0; i <= state.depth; i++)
        leave(&state.levels[i]);
    free(state.levels);
    free(state.names);
    return result > 0 ? result : 0;
}
