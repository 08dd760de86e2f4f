#include "fuzz-tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz-input.h"
#include "hard-links.h"
#include "path.h"

enum { NAMES_MAX = 4096, GROWN_MAX = 40 };

static _Noreturn void give_up(const char *what, const char *path)
{
    fprintf(stderr, "%s %s: %s\n", what, path, strerror(errno));
    exit(2);
}

/* Any byte that a name may have, mostly few of them. */
static void random_name(char name[NAME_MAX_BYTES + 1])
{
    size_t length = 1 + (fuzz_below(8) == 0 ? fuzz_below(NAME_MAX_BYTES) : fuzz_below(6));
    for (size_t i = 0; i < length; i++)
        while ((name[i] = (char)fuzz_random()) == 0 || name[i] == '/') {
        }
    name[length] = 0;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        name[0] = 'x';
}

static mode_t random_mode(void)
{
    static const mode_t odd[] = {0, 0111, 0222, 0444, 0644, 0755, 01777, 06755, 07777};
    return fuzz_below(2) == 0 ? 0755 : odd[fuzz_below(sizeof odd / sizeof *odd)];
}

static void set_random_times(int dir, const char *name)
{
    struct timespec times[2];
    for (int i = 0; i < 2; i++)
        times[i] = (struct timespec){.tv_sec = (time_t)fuzz_below(1u << 31), .tv_nsec = (long)fuzz_below(1000000000)};
    utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

static void fill(int fd)
{
    uint8_t bytes[8192];
    memset(bytes, (int)fuzz_random(), sizeof bytes);
    for (size_t pieces = fuzz_below(4); pieces > 0; pieces--) {
        off_t at = (off_t)(fuzz_below(3) == 0 ? fuzz_below(512u << 10) : fuzz_below(20000));
        if (pwrite(fd, bytes, 1 + fuzz_below(sizeof bytes), at) < 0)
            give_up("pwrite", "");
    }
    if (fuzz_below(6) == 0 && ftruncate(fd, (off_t)fuzz_below(1u << 20)) != 0)
        give_up("ftruncate", "");
}

static void make_link(int dir, const char *name, const char *outside)
{
    char target[PATH_MAX_BYTES + 1];
    size_t length = 1 + fuzz_below(PATH_MAX_BYTES);
    switch (fuzz_below(4)) {
    case 0: snprintf(target, sizeof target, "%s", outside); break;
    case 1: snprintf(target, sizeof target, "%s/sentinel", outside); break;
    case 2: snprintf(target, sizeof target, "../../../../../../.."); break;
    default:
        for (size_t i = 0; i < length; i++)
            target[i] = (char)(1 + fuzz_below(255));
        target[length] = 0;
    }
    if (symlinkat(target, dir, name) != 0 && errno != EEXIST && errno != ENAMETOOLONG)
        give_up("symlink", target);
}

static void make_socket(int dir, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if ((size_t)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir, name) < sizeof address.sun_path)
        (void)!bind(fd, (const struct sockaddr *)&address, sizeof address);
    close(fd);
}

/* One entry. `first` is a regular file that later ones may be hard links to. */
static void make_entry(int dir, char first[NAME_MAX_BYTES + 1], int *first_dir, const char *outside)
{
    char name[NAME_MAX_BYTES + 1];
    random_name(name);
    size_t kind = fuzz_below(10);
    if (kind < 5) {
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
            return;
        fill(fd);
        fchmod(fd, random_mode());
        close(fd);
        set_random_times(dir, name);
        if (*first_dir < 0 || fuzz_below(3) == 0) {
            *first_dir = dir;
            memcpy(first, name, sizeof name);
        }
    } else if (kind < 7 && *first_dir >= 0) {
        (void)!linkat(*first_dir, first, dir, name, 0);
    } else if (kind == 7) {
        make_link(dir, name, outside);
        set_random_times(dir, name);
    } else if (kind == 8 && mkfifoat(dir, name, 0600) == 0) {
        fchmodat(dir, name, random_mode(), 0);
        set_random_times(dir, name);
    } else if (kind == 9) {
        make_socket(dir, name);
    }
}

void tree_grow(const char *dir, const char *outside)
{
    struct {
        int fd, parent;
        char name[NAME_MAX_BYTES + 1];
    } dirs[GROWN_MAX] = {{.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)}};
    char first[NAME_MAX_BYTES + 1];
    int first_dir = -1;
    size_t count = 1, wanted = fuzz_below(GROWN_MAX);
    if (dirs[0].fd < 0)
        give_up("open", dir);
    for (size_t made = 0; made < wanted; made++) {
        size_t in = fuzz_below(3) == 0 ? count - 1 : fuzz_below(count);
        if (fuzz_below(3) != 0 || count == GROWN_MAX) {
            make_entry(dirs[in].fd, first, &first_dir, outside);
            continue;
        }
        dirs[count].parent = (int)in;
        random_name(dirs[count].name);
        if (mkdirat(dirs[in].fd, dirs[count].name, 0700) != 0)
            continue;
        dirs[count].fd = openat(dirs[in].fd, dirs[count].name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dirs[count].fd < 0)
            give_up("open", dirs[count].name);
        count++;
    }
    /* The deepest first: a directory takes no more entries by then, and those above it can still be entered. */
    for (size_t i = count; i-- > 1;) {
        set_random_times(dirs[dirs[i].parent].fd, dirs[i].name);
        fchmod(dirs[i].fd, random_mode());
        close(dirs[i].fd);
    }
    close(dirs[0].fd);
}

struct description {
    FILE *out;
    struct tree_facts *facts;
    struct hard_links links;
    char path[2 * PATH_MAX_BYTES];
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void write_hex(FILE *out, const char *text)
{
    for (; *text != 0; text++)
        fprintf(out, "%02x", (unsigned char)*text);
}

static uint64_t content_of(int dir, const char *name, const struct stat *status)
{
    static uint8_t bytes[65536];
    bool opens = (status->st_mode & 0400) != 0 || fchmodat(dir, name, 0600, 0) == 0;
    int fd = opens ? openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0)
        give_up("open", name);
    uint64_t hash = 0xCBF29CE484222325u;
    for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < got; i++)
            hash = (hash ^ bytes[i]) * 0x100000001B3u;
    if ((status->st_mode & 0400) == 0)
        fchmod(fd, status->st_mode & 07777);
    close(fd);
    return hash;
}

static void describe_entry(struct description *all, int dir, const char *name, const struct stat *status)
{
    char target[PATH_MAX_BYTES + 1];
    write_hex(all->out, all->path);
    fprintf(all->out, " %o", (unsigned)status->st_mode);
    /* A directory's size and count of links are its file system's affair. */
    if (!S_ISDIR(status->st_mode))
        fprintf(all->out, " %lld %llu", (long long)status->st_size, (unsigned long long)status->st_nlink);
    fprintf(all->out, " %lld.%09ld", (long long)status->st_mtim.tv_sec, status->st_mtim.tv_nsec);
    ssize_t length = S_ISLNK(status->st_mode) ? readlinkat(dir, name, target, sizeof target - 1) : -1;
    if (length >= 0) {
        target[length] = 0;
        fputs(" -> ", all->out);
        write_hex(all->out, target);
    }
    if (S_ISREG(status->st_mode)) {
        const char *first = hard_links_find(&all->links, status->st_ino);
        fprintf(all->out, " %016llx = ", (unsigned long long)content_of(dir, name, status));
        write_hex(all->out, first == NULL ? "" : first);
        if (first == NULL && !hard_links_add(&all->links, status->st_ino, all->path))
            give_up("no memory", name);
        all->facts->bytes += first == NULL ? (uint64_t)status->st_size : 0;
        all->facts->allocated += first == NULL ? (uint64_t)status->st_blocks * 512 : 0;
    }
    fputc('\n', all->out);
}

static void describe(struct description *all, int dir);

static void describe_named(struct description *all, int dir, const char *name)
{
    struct stat status;
    size_t at = strlen(all->path);
    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        give_up("stat", name);
    if (S_ISSOCK(status.st_mode))
        return;
    snprintf(all->path + at, sizeof all->path - at, "/%s", name);
    all->facts->entries++;
    all->facts->set_id += !S_ISLNK(status.st_mode) && (status.st_mode & 06000) != 0;
    all->facts->temporary += strncmp(name, ".berth-", 7) == 0;
    describe_entry(all, dir, name, &status);
    if (S_ISDIR(status.st_mode)) {
        bool pries = (status.st_mode & 0500) != 0500;
        if (pries && fchmodat(dir, name, 0700, 0) != 0)
            give_up("chmod", name);
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            give_up("open", name);
        describe(all, fd);
        if (pries)
            fchmodat(dir, name, status.st_mode & 07777, 0);
    }
    all->path[at] = 0;
}

/* Closes the directory. */
static void describe(struct description *all, int dir)
{
    char **names = calloc(NAMES_MAX, sizeof *names);
    DIR *entries = fdopendir(dir);
    size_t count = 0;
    if (names == NULL || entries == NULL)
        give_up("opendir", all->path);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL && count < NAMES_MAX;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            names[count++] = strdup(entry->d_name);
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++) {
        describe_named(all, dir, names[i]);
        free(names[i]);
    }
    free(names);
    closedir(entries);
}

struct tree_facts tree_facts_of(const char *dir)
{
    struct tree_facts facts = {.text = NULL};
    size_t length;
    struct description all = {.out = open_memstream(&facts.text, &length), .facts = &facts};
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (all.out == NULL || fd < 0)
        give_up("open", dir);
    describe(&all, fd);
    fclose(all.out);
    for (size_t i = 0; i < all.links.capacity; i++)
        free(all.links.slots[i].path);
    free(all.links.slots);
    return facts;
}
