#include "mounter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "idmap.h"

/* The kernel's interface, which musl lacks. The numbers are the same on every architecture. */
enum { OPEN_TREE = 428, MOVE_MOUNT = 429, OPENAT2 = 437, MOUNT_SETATTR = 442 };
enum { TREE_CLONE = 1, TREE_CLOEXEC = O_CLOEXEC, FROM_EMPTY_PATH = 4 };
enum { ATTR_RDONLY = 1, ATTR_NOSUID = 2, ATTR_NODEV = 4, ATTR_IDMAP = 0x00100000 };
enum { RESOLVE_NO_MAGIC_LINKS = 2, RESOLVE_NO_SYMLINKS = 4, RESOLVE_BENEATH = 8 };
struct open_how {
    uint64_t flags, mode, resolve;
};
struct mount_attributes {
    uint64_t set, clear, propagation, user_namespace;
};

enum { SLOTS_MAX = 256, WORDS_MAX = 16, LINE_MAX_BYTES = 4096, MOUNTS_MAX = 3 };

static int root_fd = -1, own_namespace = -1;
static int slots[SLOTS_MAX];
/* The step that failed last. */
static const char *step = "-";

static int failed(const char *what)
{
    step = what;
    return errno;
}

/* Makes a detached copy of a directory's mount, with the attributes that it has in the container. Returns a descriptor, or -1. */
static int clone_tree(const char *name, bool read_only, int user_namespace)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGIC_LINKS};
    int dir = (int)syscall(OPENAT2, root_fd, name, &how, sizeof how);
    if (dir < 0) {
        failed("open");
        return -1;
    }
    int tree = (int)syscall(OPEN_TREE, dir, "", AT_EMPTY_PATH | TREE_CLONE | TREE_CLOEXEC);
    if (tree < 0)
        failed("clone");
    int error = errno;
    close(dir);
    errno = error;
    if (tree < 0)
        return -1;
    /* The copy does not inherit the mount's flags. A shared mount would propagate later mounts of the host into the container. */
    struct mount_attributes attributes = {
        .set = ATTR_NOSUID | ATTR_NODEV | (read_only ? (uint64_t)ATTR_RDONLY : 0) |
               (user_namespace >= 0 ? (uint64_t)ATTR_IDMAP : 0),
        .propagation = MS_PRIVATE,
        .user_namespace = user_namespace >= 0 ? (uint64_t)user_namespace : 0,
    };
    if (syscall(MOUNT_SETATTR, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0)
        return tree;
    failed("attributes");
    error = errno;
    close(tree);
    errno = error;
    return -1;
}

static int open_idmap(uid_t from, uid_t to, int *user_namespace)
{
    *user_namespace = from == to ? -1 : idmap_open(from, to);
    return from != to && *user_namespace < 0 ? failed("idmap") : 0;
}

/* Tries all steps but the last, and leaves nothing behind. */
static int try_all(void)
{
    int user_namespace, error = open_idmap(1, 2, &user_namespace);
    if (error != 0)
        return error;
    int tree = clone_tree(".", false, user_namespace);
    error = tree < 0 ? errno : 0;
    close(user_namespace);
    if (tree < 0)
        return error;
    close(tree);
    return setns(own_namespace, CLONE_NEWNS) == 0 ? 0 : failed("enter");
}

static int open_slot(size_t slot, const char *pid, const char *number)
{
    char path[64];
    struct stat about;
    if (slots[slot] >= 0) {
        errno = EBUSY;
        return failed("open");
    }
    snprintf(path, sizeof path, "/proc/%.20s/ns/mnt", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return failed("namespace");
    /* init in the container has read its namespace's number. With another number, the pid belongs to another process, perhaps of the host. */
    if (fstat(fd, &about) != 0 || strtoull(number, NULL, 10) != (unsigned long long)about.st_ino) {
        close(fd);
        errno = ESRCH;
        return failed("namespace");
    }
    slots[slot] = fd;
    return 0;
}

static void close_slot(size_t slot)
{
    if (slots[slot] >= 0)
        close(slots[slot]);
    slots[slot] = -1;
}

/* Mounts in the container's mount namespace, and returns to its own. No process of a tenant is in the container yet, so the runtime made
 * all paths there. */
static int attach(int namespace, const int *trees, char *const *targets, size_t count)
{
    int error = 0;
    if (setns(namespace, CLONE_NEWNS) != 0)
        return failed("enter");
    for (size_t i = 0; i < count && error == 0; i++)
        if (syscall(MOVE_MOUNT, trees[i], "", AT_FDCWD, targets[i], FROM_EMPTY_PATH) != 0)
            error = failed("mount");
    if (setns(own_namespace, CLONE_NEWNS) != 0)
        exit(1); /* in the container's namespace, this process must not take another request */
    return error;
}

/* `what`: triples of access, name and target. */
static int mount_all(int namespace, uid_t from, uid_t to, char *const *what, size_t count)
{
    int trees[MOUNTS_MAX], user_namespace;
    char *targets[MOUNTS_MAX];
    size_t made = 0;
    int error = open_idmap(from, to, &user_namespace);
    for (; error == 0 && made < count; made++) {
        char *const *one = what + 3 * made;
        trees[made] = clone_tree(one[1], strcmp(one[0], "ro") == 0, user_namespace);
        if (trees[made] < 0) {
            error = errno;
            break;
        }
        targets[made] = one[2];
    }
    if (user_namespace >= 0)
        close(user_namespace);
    if (error == 0)
        error = attach(namespace, trees, targets, count);
    while (made > 0)
        close(trees[--made]);
    return error;
}

static int malformed(void)
{
    errno = EINVAL;
    return failed("request");
}

static bool take_id(const char *word, unsigned long most, unsigned long *out)
{
    char *end;
    *out = strtoul(word, &end, 10);
    return *word >= '0' && *word <= '9' && *end == 0 && *out <= most;
}

static int obey_mount(size_t slot, char *const *words, size_t count)
{
    unsigned long from, to;
    size_t mounts = (count - 2) / 3;
    if ((count - 2) % 3 != 0 || mounts == 0 || mounts > MOUNTS_MAX || !take_id(words[0], UINT32_MAX - 1, &from) ||
        !take_id(words[1], UINT32_MAX - 1, &to))
        return malformed();
    for (size_t i = 0; i < mounts; i++)
        if (words[2 + 3 * i + 2][0] != '/')
            return malformed();
    if (slots[slot] < 0) {
        errno = EBADF;
        return failed("request");
    }
    int error = mount_all(slots[slot], (uid_t)from, (uid_t)to, words + 2, mounts);
    close_slot(slot);
    return error;
}

/* `words`: the request without its id. */
static int obey(char *const *words, size_t count)
{
    unsigned long slot, pid;
    if (count == 1 && strcmp(words[0], "try") == 0)
        return try_all();
    if (count < 2 || !take_id(words[1], SLOTS_MAX - 1, &slot))
        return malformed();
    if (count == 4 && strcmp(words[0], "open") == 0 && take_id(words[2], INT32_MAX, &pid))
        return open_slot(slot, words[2], words[3]);
    if (count >= 7 && strcmp(words[0], "mount") == 0)
        return obey_mount(slot, words + 2, count - 2);
    if (count != 2 || strcmp(words[0], "close") != 0)
        return malformed();
    close_slot(slot);
    return 0;
}

static void answer(char *line)
{
    char *words[WORDS_MAX];
    size_t count = 0;
    for (char *at = line; count < WORDS_MAX && (words[count] = strtok(at, " ")) != NULL; at = NULL)
        count++;
    step = "-";
    int error = count < 2 || count == WORDS_MAX ? malformed() : obey(words + 1, count - 1);
    printf("%.20s %d %s\n", count > 0 ? words[0] : "?", error, step);
    fflush(stdout);
}

int mounter_run(const char *root)
{
    static char line[LINE_MAX_BYTES];
    signal(SIGPIPE, SIG_DFL);
    for (size_t i = 0; i < SLOTS_MAX; i++)
        slots[i] = -1;
    root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    own_namespace = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (root_fd < 0 || own_namespace < 0) {
        fprintf(stderr, "init --mounter: %s: %s\n", root_fd < 0 ? root : "/proc/self/ns/mnt", strerror(errno));
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        size_t length = strlen(line);
        /* The rest of a line that does not fit would be read as another request. */
        if (length == 0 || line[length - 1] != '\n')
            return 1;
        line[length - 1] = 0;
        answer(line);
    }
    return 0;
}
