#include "path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "room.h"

struct root {
    int fd;
    const char *dir;
    size_t dir_length;
};

/* The workspace first. */
static struct root roots[ROOTS_MAX];
static size_t root_count;

int path_open_root(const char *dir)
{
    if (root_count == ROOTS_MAX)
        return EMFILE;
    struct root root = {.fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), .dir = dir, .dir_length = strlen(dir)};
    while (root.dir_length > 0 && dir[root.dir_length - 1] == '/')
        root.dir_length--;
    if (root.fd < 0)
        return errno;
    roots[root_count++] = root;
    return 0;
}

int path_workspace_fd(void)
{
    return path_root_fd(0);
}

int path_root_fd(size_t root)
{
    return root < root_count ? roots[root].fd : -1;
}

/* The rest of an absolute path beneath one of the roots, or NULL. `end` is one past the path's last byte. */
static const char *below_root(const char *at, const char *end, size_t *root)
{
    for (size_t i = 0; i < root_count; i++) {
        size_t length = roots[i].dir_length;
        if ((size_t)(end - at) < length || memcmp(at, roots[i].dir, length) != 0)
            continue;
        if (at + length != end && at[length] != '/')
            continue;
        *root = i;
        return at + length;
    }
    return NULL;
}

const char *path_below_root(const char *path, size_t *root)
{
    return below_root(path, path + strlen(path), root);
}

static bool is_dot(const char *at, size_t length)
{
    return length == 1 && at[0] == '.';
}

static bool is_dot_dot(const char *at, size_t length)
{
    return length == 2 && at[0] == '.' && at[1] == '.';
}

enum fail path_clean(const char *bytes, size_t length, struct clean_path *out)
{
    if (length > PATH_MAX_BYTES)
        return INVALID_PATH;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7F)
            return INVALID_PATH;
    const char *at = bytes, *end = bytes + length;
    size_t used = 0;
    out->root = 0;
    out->wants_directory = length > 0 && end[-1] == '/';
    /* `..` is refused everywhere, so that /workspace/../etc is an invalid path. */
    for (const char *piece = at; piece < end;) {
        const char *slash = memchr(piece, '/', (size_t)(end - piece));
        size_t size = (size_t)((slash == NULL ? end : slash) - piece);
        if (size > NAME_MAX_BYTES || is_dot_dot(piece, size))
            return INVALID_PATH;
        piece += size + 1;
    }
    if (length > 0 && *at == '/' && (at = below_root(at, end, &out->root)) == NULL)
        return OUTSIDE_WORKSPACE;
    while (at < end) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        size_t size = (size_t)((slash == NULL ? end : slash) - at);
        if (size > 0 && !is_dot(at, size)) {
            if (used > 0)
                out->text[used++] = '/';
            memcpy(out->text + used, at, size);
            used += size;
        }
        at += size + 1;
    }
    out->text[used] = 0;
    return OK;
}

/* The directories on the way, the root first. Only the last HELD stay open, so that a path cannot use up the descriptors. A symlink that
 * goes back further is refused. */
enum { HELD = 64 };

struct walk {
    int held[HELD];
    size_t root;
    size_t depth; /* below the root */
    size_t lowest; /* held[x % HELD] is open for lowest < x <= depth */
    char rest[2 * PATH_MAX_BYTES + 3];
    unsigned links;
};

static int current(const struct walk *walk)
{
    return walk->depth == 0 ? roots[walk->root].fd : walk->held[walk->depth % HELD];
}

static void push(struct walk *walk, int fd)
{
    walk->depth++;
    if (walk->depth - walk->lowest > HELD) {
        close(walk->held[walk->depth % HELD]);
        walk->lowest++;
    }
    walk->held[walk->depth % HELD] = fd;
}

static enum fail pop(struct walk *walk)
{
    if (walk->depth == 0)
        return OUTSIDE_WORKSPACE;
    if (walk->depth == walk->lowest)
        return TOO_MANY_LINKS;
    close(walk->held[walk->depth % HELD]);
    walk->depth--;
    return walk->depth > 0 && walk->depth == walk->lowest ? TOO_MANY_LINKS : OK;
}

static void to_root(struct walk *walk)
{
    while (walk->depth > walk->lowest)
        close(walk->held[walk->depth-- % HELD]);
    walk->depth = walk->lowest = 0;
}

/* Puts a symlink's target in front of the rest of the path. */
static enum fail expand(struct walk *walk, const char *name, const char *after)
{
    char target[PATH_MAX_BYTES + 1];
    ssize_t length = readlinkat(current(walk), name, target, sizeof target);
    if (length < 0)
        return errno == EINVAL ? NOT_A_DIRECTORY : fail_from_errno(errno);
    if (length == 0 || length > PATH_MAX_BYTES)
        return INVALID_PATH;
    if (++walk->links > LINKS_MAX)
        return TOO_MANY_LINKS;
    const char *at = target, *end = target + length;
    if (target[0] == '/') {
        size_t root;
        if ((at = below_root(target, end, &root)) == NULL)
            return OUTSIDE_WORKSPACE;
        to_root(walk);
        walk->root = root;
    }
    size_t size = (size_t)(end - at), after_size = strlen(after);
    if (size + 1 + after_size >= sizeof walk->rest)
        return INVALID_PATH;
    memmove(walk->rest + size + 1, after, after_size + 1);
    memcpy(walk->rest, at, size);
    walk->rest[size] = '/';
    return OK;
}

/* Takes the next name off the front of the rest. */
static const char *next_name(struct walk *walk, char name[NAME_MAX_BYTES + 1], const char **after, enum fail *fail)
{
    const char *at = walk->rest;
    while (*at == '/')
        at++;
    size_t size = strcspn(at, "/");
    if (size == 0)
        return NULL;
    if (size > NAME_MAX_BYTES) {
        *fail = INVALID_PATH;
        return NULL;
    }
    memcpy(name, at, size);
    name[size] = 0;
    at += size;
    while (*at == '/')
        at++;
    *after = at;
    return name;
}

static enum fail enter(struct walk *walk, const char *name, const char *after, int options)
{
    for (int attempt = 0;; attempt++) {
        int fd = openat(current(walk), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            push(walk, fd);
            memmove(walk->rest, after, strlen(after) + 1);
            return OK;
        }
        if (errno == ENOTDIR || errno == ELOOP)
            return expand(walk, name, after);
        if (errno != ENOENT || (options & PATH_MAKE_PARENTS) == 0 || attempt > 0)
            return fail_from_errno(errno);
        if (!room_take_directory())
            return QUOTA;
        if (mkdirat(current(walk), name, 0755) != 0 && errno != EEXIST)
            return fail_from_errno(errno);
    }
}

/* Handles the last name: does not open it, and expands it if it is a symlink to be followed. True when the walk has arrived. */
static bool arrive(struct walk *walk, const char *name, int options, enum fail *fail)
{
    if ((options & PATH_FOLLOW) == 0)
        return true;
    *fail = expand(walk, name, "");
    if (*fail == NOT_A_DIRECTORY || *fail == NOT_FOUND) {
        *fail = OK; /* no symlink, or nothing there */
        return true;
    }
    return *fail != OK;
}

enum fail path_resolve(const struct clean_path *path, int options, struct place *out)
{
    struct walk walk = {.root = path->root, .depth = 0, .lowest = 0, .links = 0};
    memcpy(walk.rest, path->text, strlen(path->text) + 1);
    enum fail fail = OK;
    char name[NAME_MAX_BYTES + 1];
    const char *after = "";
    out->dir = -1;
    out->name[0] = 0;
    while (fail == OK && next_name(&walk, name, &after, &fail) != NULL) {
        if (is_dot(name, strlen(name))) {
            memmove(walk.rest, after, strlen(after) + 1);
        } else if (is_dot_dot(name, strlen(name))) {
            memmove(walk.rest, after, strlen(after) + 1);
            fail = pop(&walk);
        } else if (*after != 0) {
            fail = enter(&walk, name, after, options);
        } else if (arrive(&walk, name, options, &fail)) {
            memcpy(out->name, name, strlen(name) + 1);
            break;
        }
    }
    if (fail == OK && (out->dir = fcntl(current(&walk), F_DUPFD_CLOEXEC, 3)) < 0)
        fail = IO;
    to_root(&walk);
    return fail;
}

enum fail path_open_directory(const struct clean_path *path, bool readable, int *fd)
{
    struct place place;
    *fd = -1;
    enum fail fail = path_resolve(path, PATH_FOLLOW, &place);
    if (fail != OK)
        return fail;
    const char *name = place.name[0] == 0 ? "." : place.name;
    *fd = openat(place.dir, name, (readable ? O_RDONLY : O_PATH) | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int error = errno;
    close(place.dir);
    return *fd >= 0 ? OK : fail_from_errno(error);
}
