#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inflate.h"
#include "room.h"
#include "unpack.h"

/* More than any workspace is likely to hold. */
static const uint64_t UNPACKED_MAX = UINT64_C(4) * 1024 * 1024 * 1024;

static bool take_entry(void *context, const struct tar_entry *entry)
{
    static struct clean_path path;
    static char target[PATH_MAX_BYTES + 1];
    struct unpack *unpack = context;
    if (unpack->each && entry->type != 'f')
        return tar_refuse(&unpack->tar, "%s is not a file", entry->path);
    if (!unpack_entry_path(unpack, entry->path, &path) || !unpack_target(unpack, entry, &path, target))
        return false;
    if (path.text[0] == 0 || (path.root == 0 && strcmp(path.text, unpack->base) == 0))
        return entry->type == 'd' || tar_refuse(&unpack->tar, "an entry has no name%s", "");
    char was;
    if (plan_add(&unpack->plan, path.text, entry->type, target, &was) == PLAN_FULL)
        return tar_refuse(&unpack->tar, "it has more than 100000 entries, or 32 MiB of names%s", "");
    if (unpack->checks) {
        unpack->bytes += entry->size;
        return true;
    }
    /* A name that comes again counts once. Links are counted when they are made. */
    if ((was == 'f' || was == 'd') && unpack->count > 0)
        unpack->count--;
    if (entry->type == 'f')
        return unpack_begin_file(unpack, &path, entry);
    if (entry->type != 'd')
        return true;
    if (!unpack_directory(unpack, &path, entry))
        return false;
    unpack->count++;
    return true;
}

static bool take_content(void *context, const uint8_t *bytes, size_t length)
{
    struct unpack *unpack = context;
    return unpack->checks || unpack_content(unpack, bytes, length);
}

static size_t read_stdin(struct unpack *unpack, uint8_t *into, size_t size)
{
    ssize_t got;
    while ((got = read(unpack->job->in, into, size)) < 0 && errno == EINTR) {
    }
    return got > 0 ? (size_t)got : 0;
}

static uint8_t chunk[CHUNK];
static size_t first_bytes; /* how many bytes of `chunk` were read to recognise gzip, and not yet unpacked */

static size_t more(void *context, const uint8_t **at)
{
    size_t length = first_bytes;
    first_bytes = 0;
    *at = chunk;
    return length > 0 ? length : read_stdin(context, chunk, sizeof chunk);
}

static bool emit(void *context, const uint8_t *bytes, size_t length)
{
    struct unpack *unpack = context;
    unpack->unpacked += length;
    if (unpack->unpacked > UNPACKED_MAX)
        return tar_refuse(&unpack->tar, "it unpacks to more than 4294967296 bytes%s", "");
    return tar_push(&unpack->tar, bytes, length);
}

/* Recognises gzip by its first two bytes. */
static bool read_archive(struct unpack *unpack)
{
    const uint8_t *at;
    first_bytes = 0;
    for (size_t got; first_bytes < 2; first_bytes += got)
        if ((got = read_stdin(unpack, chunk + first_bytes, sizeof chunk - first_bytes)) == 0)
            break;
    if (first_bytes >= 2 && chunk[0] == 0x1F && chunk[1] == 0x8B) {
        struct gunzip gunzip = {.context = unpack, .more = more, .emit = emit};
        if (!gunzip_run(&gunzip))
            return gunzip.problem == NULL ? false : tar_refuse(&unpack->tar, "its gzip data is damaged (%s)", gunzip.problem);
    } else {
        for (size_t length; (length = more(unpack, &at)) > 0;)
            if (!tar_push(&unpack->tar, at, length))
                return false;
    }
    return tar_finish(&unpack->tar);
}

static enum fail run(struct unpack *unpack)
{
    bool whole = read_archive(unpack);
    if (whole && unpack->checks)
        whole = unpack_check_plan(unpack);
    else if (whole)
        whole = unpack_links(unpack);
    uint64_t planned = unpack->plan.count;
    unpack_give_up(unpack);
    tar_free(&unpack->tar);
    plan_free(&unpack->plan);
    struct job *job = unpack->job;
    if (!whole && !unpack->stopped) {
        job->message = unpack->tar.problem;
        return unpack->tar.problem[0] == 0 ? INTERRUPTED : BAD_ARCHIVE;
    }
    enum fail fail = items_end(&unpack->items, job, false);
    /* Overwrites the count of items that items_end wrote. */
    job->done.length = 0;
    write_number(&job->done, DONE_COUNT, unpack->checks ? planned : unpack->count);
    write_number(&job->done, DONE_BYTES, unpack->bytes);
    room_report(&job->done);
    return fail;
}

enum fail file_unpack(struct job *job)
{
    static struct unpack unpack;
    static struct clean_path base;
    const struct file_request *request = job->request;
    enum fail fail = path_clean(request->path.at, request->path.length, &base);
    if (fail == OK && base.root != 0)
        fail = INVALID_PATH;
    if (fail != OK)
        return fail;
    unpack = (struct unpack){
        .job = job,
        .base = base.text,
        .checks = (request->flags & UNPACK_CHECK) != 0,
        .each = (request->flags & UNPACK_EACH) != 0,
        .file = {.fd = -1, .dir = -1},
        .parent = -1,
        .umask = umask(022),
    };
    umask(unpack.umask);
    unpack.tar = (struct tar){.context = &unpack, .entry = take_entry, .content = take_content};
    items_begin(&unpack.items, job);
    return run(&unpack);
}
