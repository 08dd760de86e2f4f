/*
 * fuzz-archive SEED ITERATIONS FILE...: mutates archives, plain and in gzip, and unpacks them into nothing, in pieces of random
 * size. The sanitizers judge memory; this file judges two promises: what is refused has a reason, and no entry's name
 * leaves its root.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "fuzz-input.h"
#include "inflate.h"
#include "path.h"
#include "plan.h"
#include "tar.h"

enum { ARCHIVE_MAX = 1 << 20, EMITTED_MAX = 1 << 24 };

static uint64_t entries_seen, refused_seen;
static volatile uint64_t content_sum;

static bool see_entry(void *context, const struct tar_entry *entry)
{
    static struct clean_path path;
    char was;
    entries_seen++;
    if (path_clean(entry->path, strlen(entry->path), &path) == OK) {
        if (strncmp(path.text, "../", 3) == 0 || strstr(path.text, "/../") != NULL || strcmp(path.text, "..") == 0)
            abort();
        plan_add(context, path.text, entry->type, entry->target, &was);
    }
    return true;
}

static bool see_content(void *context, const uint8_t *bytes, size_t length)
{
    (void)context;
    /* Read, so that what lies outside is seen. */
    for (size_t i = 0; i < length; i++)
        content_sum += bytes[i];
    return true;
}

struct input {
    const uint8_t *at;
    size_t left;
    uint64_t emitted;
    struct tar *tar;
};

static size_t more(void *context, const uint8_t **at)
{
    struct input *input = context;
    size_t part = min_size(input->left, 1 + fuzz_below(3000));
    *at = input->at;
    input->at += part;
    input->left -= part;
    return part;
}

static bool emit(void *context, const uint8_t *bytes, size_t length)
{
    struct input *input = context;
    input->emitted += length;
    return input->emitted < EMITTED_MAX && tar_push(input->tar, bytes, length);
}

static void unpack(const uint8_t *bytes, size_t length)
{
    /* In memory of exactly its size, so that a read past its end is seen. */
    uint8_t *copy = malloc(length + (length == 0));
    memcpy(copy, bytes, length);
    struct plan plan = {.count = 0};
    struct tar tar = {.context = &plan, .entry = see_entry, .content = see_content};
    struct input input = {.at = copy, .left = length, .tar = &tar};
    struct gunzip gunzip = {.context = &input, .more = more, .emit = emit};
    bool good = true;
    if (length >= 2 && copy[0] == 0x1F && copy[1] == 0x8B) {
        good = gunzip_run(&gunzip);
    } else {
        const uint8_t *at;
        for (size_t part; good && (part = more(&input, &at)) > 0;)
            good = tar_push(&tar, at, part);
    }
    good = good && tar_finish(&tar);
    if (!good) {
        refused_seen++;
        if (tar.problem[0] == 0 && gunzip.problem == NULL && input.emitted < EMITTED_MAX)
            abort();
    }
    tar_free(&tar);
    plan_free(&plan);
    free(copy);
}

int main(int argc, char **argv)
{
    static uint8_t original[ARCHIVE_MAX], bytes[ARCHIVE_MAX];
    if (argc < 4)
        return 2;
    fuzz_seed(argv[1]);
    uint64_t iterations = strtoull(argv[2], NULL, 10);
    path_open_root("/");
    for (int i = 3; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (file == NULL)
            return 2;
        size_t whole = fread(original, 1, sizeof original, file);
        fclose(file);
        for (uint64_t n = 0; n < iterations; n++) {
            size_t length = whole;
            memcpy(bytes, original, whole);
            fuzz_mutate_archive(bytes, &length);
            fuzz_mend_sums(bytes, length);
            unpack(bytes, length);
        }
    }
    printf("%llu entries, %llu refused\n", (unsigned long long)entries_seen, (unsigned long long)refused_seen);
    return 0;
}
