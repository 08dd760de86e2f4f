/*
 * fuzz-clone SEED ITERATIONS DIR: makes trees as a hostile tenant would, copies each with `clone` several times at once, and removes
 * all with `clear`. The sanitizers judge memory; this file judges that a copy has all that the tree has, that the tree stays as it
 * was, that holes stay holes, and that nothing beside them changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz-input.h"
#include "fuzz-tree.h"
#include "job.h"
#include "path.h"
#include "tool.h"

/* What file systems take more or less for a file's last block, and for where its blocks are. */
enum { SLACK_BYTES = 512 * 1024, WORDS_MAX = 4, COPIES = 3 };

static const char *const copies[COPIES] = {"first", "second", "third"};

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

/* In a process of its own, as the worker runs it: clone_main keeps what it has gathered until it ends. */
static pid_t start(int words, const char *first, const char *second, const char *third)
{
    char *argv[WORDS_MAX + 1] = {"init", (char *)(uintptr_t)first, (char *)(uintptr_t)second, (char *)(uintptr_t)third, NULL};
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        must(freopen("/dev/null", "w", stdout) != NULL, "/dev/null");
        _exit(tool_main(words, argv));
    }
    return child;
}

static bool went_well(pid_t child)
{
    int status;
    must(waitpid(child, &status, 0) == child, "waitpid");
    return status == 0;
}

/* Of one tree at the same time, as many forks of a snapshot are made. */
static bool clone_side_by_side(void)
{
    pid_t children[COPIES];
    bool good = true;
    for (int i = 0; i < COPIES; i++) {
        must(mkdir(copies[i], 0755) == 0, copies[i]);
        children[i] = start(4, "clone", "from", copies[i]);
    }
    for (int i = 0; i < COPIES; i++)
        good = went_well(children[i]) && good;
    return good;
}

static void remove_tree(const char *tree, uint64_t i, const char *seed)
{
    if (!went_well(start(3, "clear", tree, NULL)) || rmdir(tree) != 0)
        broken("a tree was not removed", i, seed);
}

static void judge_copy(const char *path, const struct tree_facts *before, uint64_t i, const char *seed)
{
    struct tree_facts copy = tree_facts_of(path);
    if (strcmp(before->text, copy.text) != 0) {
        fprintf(stderr, "the tree:\n%sthe copy:\n%s", before->text, copy.text);
        broken("the copy is another tree", i, seed);
    }
    if (copy.allocated > before->allocated + SLACK_BYTES)
        broken("the copy has no holes", i, seed);
    free(copy.text);
}

static uint64_t once(uint64_t i, const char *seed, const char *beside_text)
{
    must(mkdir("from", 0755) == 0, "mkdir");
    char outside[PATH_MAX_BYTES];
    must(getcwd(outside, sizeof outside - sizeof "/outside") != NULL, "getcwd");
    strcat(outside, "/outside");
    tree_grow("from", outside);
    struct tree_facts before = tree_facts_of("from");
    if (!clone_side_by_side())
        broken("a tree was not copied", i, seed);
    struct tree_facts after = tree_facts_of("from"), beside = tree_facts_of(outside);
    if (strcmp(before.text, after.text) != 0)
        broken("the tree changed while it was copied", i, seed);
    for (int copy = 0; copy < COPIES; copy++)
        judge_copy(copies[copy], &before, i, seed);
    if (strcmp(beside.text, beside_text) != 0)
        broken("something beside the trees changed", i, seed);
    uint64_t entries = before.entries;
    free(before.text);
    free(after.text);
    free(beside.text);
    remove_tree("from", i, seed);
    for (int copy = 0; copy < COPIES; copy++)
        remove_tree(copies[copy], i, seed);
    return entries;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    fuzz_seed(argv[1]);
    uint64_t iterations = strtoull(argv[2], NULL, 10), entries = 0;
    errno = fuzz_drop_root(argv[3]);
    must(errno == 0 && chdir(argv[3]) == 0 && mkdir("outside", 0755) == 0, argv[3]);
    umask(022);
    int fd = open("outside/sentinel", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    must(fd >= 0 && write_all(fd, "of the host\n", 12), "sentinel");
    close(fd);
    struct tree_facts beside = tree_facts_of("outside");
    for (uint64_t i = 0; i < iterations; i++)
        entries += once(i, argv[1], beside.text);
    printf("%llu trees, %llu entries\n", (unsigned long long)iterations, (unsigned long long)entries);
    free(beside.text);
    return 0;
}
