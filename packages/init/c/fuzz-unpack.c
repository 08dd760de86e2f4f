/*
 * fuzz-unpack SEED ITERATIONS DIR FILE...: mutates archives, and has them unpacked as a job would into a workspace in DIR in which a
 * tenant has laid traps. The sanitizers judge memory; this file judges what holds whatever an archive says: nothing beside the
 * workspace changes, a check writes nothing, nothing passes the room that there is, no set-id bit comes, and neither a file half
 * written nor an open descriptor is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"
#include "fuzz-input.h"
#include "fuzz-tree.h"
#include "job.h"
#include "path.h"
#include "protocol.h"
#include "record.h"
#include "tar.h"
#include "tool.h"

enum { ARCHIVE_MAX = 1 << 20, ARCHIVES_MAX = 64 };

static struct {
    uint8_t *bytes;
    size_t length;
} archives[ARCHIVES_MAX];
static size_t archive_count;
static char place[PATH_MAX_BYTES + 1], workspace[PATH_MAX_BYTES + 16], outside[PATH_MAX_BYTES + 16];
static uint64_t done_seen, refused_seen, made_seen;

static _Noreturn void broken(const char *promise, uint64_t iteration, const char *seed)
{
    fprintf(stderr, "seed %s iteration %llu: %s\n", seed, (unsigned long long)iteration, promise);
    abort();
}

static void must(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(2);
}

static void load(int argc, char **argv)
{
    for (int i = 4; i < argc && archive_count < ARCHIVES_MAX; i++) {
        FILE *file = fopen(argv[i], "rb");
        must(file != NULL, argv[i]);
        archives[archive_count].bytes = malloc(ARCHIVE_MAX);
        archives[archive_count].length = fread(archives[archive_count].bytes, 1, ARCHIVE_MAX, file);
        archive_count++;
        fclose(file);
    }
    must(archive_count > 0, "no archive");
}

static void make_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    must(fd >= 0 && write_all(fd, text, strlen(text)), path);
    close(fd);
}

/* What a tenant may have in its workspace when an archive comes. */
static void lay_traps(void)
{
    must(chdir(workspace) == 0 && mkdir("dir", 0755) == 0 && mkdir("closed", 0000) == 0 && mkfifo("fifo", 0600) == 0, workspace);
    must(symlink("../outside", "out") == 0 && symlink(outside, "abs") == 0 && symlink("../../outside", "dir/up") == 0, "symlink");
    must(symlink("file", "link") == 0 && symlink("dir", "dirlink") == 0 && symlink("loop", "loop") == 0, "symlink");
    must(symlink("../outside/new", "dangling") == 0, "symlink");
    make_file("file", "of the workspace\n");
    make_file("dir/file", "deeper\n");
    must(link("file", "hard") == 0, "link");
}

static const char *const names[] = {
    "out/sentinel", "out/new",     "abs/sentinel", "dir/up/sentinel", "dir/up/new/er", "link",     "dirlink/file", "dirlink/up/new",
    "fifo",         "file",        "file/beneath", "loop/x",          "closed/x",      "dangling", "hard",         "dir",
    ".",            "out",         "abs",          "../outside/new",  "/etc/passwd",   "a//./b",   "new/n/e/w",    "dir/file",
    "x/../../new",  "dirlink",     "dir/up",       "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a",
};

/* Headers that say what a hostile one would: names that meet the traps, another type, a link's target, every bit of a mode. */
static void aim(uint8_t *bytes, size_t length)
{
    for (size_t at = 0; at + TAR_BLOCK <= length; at += TAR_BLOCK) {
        if (memcmp(bytes + at + 257, "ustar", 5) != 0)
            continue;
        const char *name = names[fuzz_below(sizeof names / sizeof *names)];
        if (fuzz_below(4) == 0)
            strncpy((char *)bytes + at, name, 100);
        name = names[fuzz_below(sizeof names / sizeof *names)];
        if (fuzz_below(4) == 0)
            strncpy((char *)bytes + at + 157, name, 100);
        if (fuzz_below(6) == 0)
            bytes[at + 156] = (uint8_t)"0125gxLK"[fuzz_below(8)];
        if (fuzz_below(6) == 0)
            memcpy(bytes + at + 100, "0006777", 8);
    }
}

struct order {
    uint64_t flags, budget, entries;
};

static size_t unpack(const struct order *order, const uint8_t *bytes, size_t length, uint8_t result[RESULT_MAX])
{
    static const char *const bases[] = {"", "", "", "dir", "new/base", "out", "dir/up", "file", "dirlink"};
    uint8_t payload[256];
    struct record_writer writer = {.buffer = payload, .capacity = sizeof payload};
    write_number(&writer, FILE_OP, OP_UNPACK);
    write_text(&writer, FILE_PATH, bases[fuzz_below(sizeof bases / sizeof *bases)]);
    write_number(&writer, FILE_FLAGS, order->flags);
    write_number(&writer, FILE_BUDGET, order->budget);
    write_number(&writer, FILE_MAX_ITEMS, order->entries);
    int in = memfd_create("archive", MFD_CLOEXEC), out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    must(in >= 0 && out >= 0 && write_all(in, bytes, length) && lseek(in, 0, SEEK_SET) == 0, "memfd");
    size_t answer = job_run(payload, writer.length, in, out, result);
    close(in);
    close(out);
    return answer;
}

static int lowest_free(void)
{
    int fd = dup(STDERR_FILENO);
    close(fd);
    return fd;
}

static void judge(const struct order *order, const struct tree_facts *before, const struct tree_facts *beside, uint64_t i,
                  const char *seed)
{
    struct tree_facts after = tree_facts_of(workspace), now = tree_facts_of(outside);
    if (strcmp(now.text, beside->text) != 0)
        broken("something beside the workspace changed", i, seed);
    if ((order->flags & UNPACK_CHECK) != 0 && strcmp(after.text, before->text) != 0)
        broken("a check wrote something", i, seed);
    if (after.entries > before->entries + order->entries)
        broken("there are more entries than there was room for", i, seed);
    if (after.bytes > before->bytes + order->budget)
        broken("there are more bytes than there was room for", i, seed);
    if (after.set_id > 0)
        broken("a set-id bit came", i, seed);
    if (after.temporary > 0)
        broken("a file that was half written is left", i, seed);
    made_seen += after.entries > before->entries ? after.entries - before->entries : 0;
    free(after.text);
    free(now.text);
}

static void once(uint64_t i, const char *seed, const struct tree_facts *beside)
{
    static uint8_t bytes[ARCHIVE_MAX], result[RESULT_MAX];
    size_t pick = fuzz_below(archive_count), length = archives[pick].length;
    struct order order = {.flags = fuzz_below(4) == 0 ? UNPACK_CHECK : fuzz_below(3) == 0 ? UNPACK_EACH : 0,
                          .budget = fuzz_below(2) == 0 ? fuzz_below(200000) : 1 << 30,
                          .entries = fuzz_below(2) == 0 ? fuzz_below(60) : 1 << 20};
    memcpy(bytes, archives[pick].bytes, length);
    aim(bytes, length);
    fuzz_mutate_archive(bytes, &length);
    fuzz_mend_sums(bytes, length);
    lay_traps();
    umask(fuzz_below(2) == 0 ? 022 : 002);
    struct tree_facts before = tree_facts_of(workspace);
    int fd = lowest_free();
    size_t answer = unpack(&order, bytes, length, result);
    if (answer == 0 || (result[0] != T_DONE && result[0] != T_FAIL))
        broken("there is no answer", i, seed);
    if (lowest_free() != fd)
        broken("a descriptor is left open", i, seed);
    if (result[0] == T_DONE)
        done_seen++;
    else
        refused_seen++;
    judge(&order, &before, beside, i, seed);
    free(before.text);
    must(clear_main(workspace) == 0, "clear");
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    fuzz_seed(argv[1]);
    uint64_t iterations = strtoull(argv[2], NULL, 10);
    load(argc, argv);
    errno = fuzz_drop_root(argv[3]);
    must(errno == 0, argv[3]);
    must(realpath(argv[3], place) != NULL, argv[3]);
    snprintf(workspace, sizeof workspace, "%s/workspace", place);
    snprintf(outside, sizeof outside, "%s/outside", place);
    must(mkdir(workspace, 0755) == 0 && mkdir(outside, 0755) == 0 && chdir(outside) == 0, argv[3]);
    make_file("sentinel", "of the host\n");
    must(path_open_root(workspace) == 0, workspace);
    /* clear_main says what it removed; the last line is this program's. */
    struct tree_facts beside = tree_facts_of(outside);
    for (uint64_t i = 0; i < iterations; i++)
        once(i, argv[1], &beside);
    printf("%llu done, %llu refused, %llu entries made\n", (unsigned long long)done_seen, (unsigned long long)refused_seen,
           (unsigned long long)made_seen);
    free(beside.text);
    for (size_t i = 0; i < archive_count; i++)
        free(archives[i].bytes);
    return 0;
}
