/* Sends many entries with their contents in one stream: an item for each, followed by a file's bytes in pieces. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "items.h"
#include "job.h"
#include "path.h"
#include "record.h"
#include "walk.h"

enum { BLOCK = 256 * 1024, PIECE_HEADER = 4, ITEM_MOST = 2 * PATH_MAX_BYTES + 256 };

struct pack {
    struct job *job;
    uint64_t left;  /* bytes of content that may still be sent */
    uint64_t items; /* items that may still be sent */
    uint64_t count, bytes;
    bool truncated, broken;
    size_t used;
    uint8_t block[BLOCK];
};

static void flush(struct pack *pack)
{
    if (pack->used > 0 && !pack->broken && !write_all(pack->job->out, pack->block, pack->used))
        pack->broken = true;
    pack->used = 0;
}

static struct record_writer begin_item(struct pack *pack)
{
    if (BLOCK - pack->used < PIECE_HEADER + ITEM_MOST)
        flush(pack);
    return (struct record_writer){.buffer = pack->block + pack->used + PIECE_HEADER, .capacity = ITEM_MOST};
}

static void end_item(struct pack *pack, const struct record_writer *writer)
{
    put_u32(pack->block + pack->used, (uint32_t)writer->length);
    pack->used += PIECE_HEADER + writer->length;
    pack->count++;
}

/* Names an entry that is not sent, with the reason. */
static void add_refusal(struct pack *pack, const char *path, enum fail fail)
{
    struct record_writer writer = begin_item(pack);
    write_text(&writer, ITEM_PATH, path);
    write_text(&writer, ITEM_CODE, fail_code(fail));
    end_item(pack, &writer);
}

static void add_entry(struct pack *pack, const char *path, const struct stat *status, const char *target)
{
    struct record_writer writer = begin_item(pack);
    char type = type_letter(status->st_mode);
    write_text(&writer, ITEM_PATH, path);
    write_bytes(&writer, ITEM_TYPE, &type, 1);
    write_number(&writer, ITEM_SIZE, (uint64_t)status->st_size);
    write_number(&writer, ITEM_MODE, status->st_mode & 07777);
    write_number(&writer, ITEM_MTIME_MS, mtime_ms(status));
    if (target != NULL)
        write_text(&writer, ITEM_TARGET, target);
    end_item(pack, &writer);
}

/* Sends at most the size that the file had when it was opened. Content that cannot be read ends early. */
static void add_content(struct pack *pack, int fd, uint64_t size)
{
    while (size > 0 && !pack->broken) {
        if (BLOCK - pack->used < 2 * PIECE_HEADER + min_size(CHUNK, (size_t)min_u64(size, CHUNK)))
            flush(pack);
        uint8_t *at = pack->block + pack->used;
        size_t room = BLOCK - pack->used - 2 * PIECE_HEADER;
        ssize_t got = read(fd, at + PIECE_HEADER, (size_t)min_u64(room, size));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        put_u32(at, (uint32_t)got);
        pack->used += PIECE_HEADER + (size_t)got;
        pack->bytes += (uint64_t)got;
        size -= (uint64_t)got;
    }
    if (BLOCK - pack->used < PIECE_HEADER)
        flush(pack);
    put_u32(pack->block + pack->used, 0);
    pack->used += PIECE_HEADER;
}

static void add_file(struct pack *pack, int dir, const char *name, const char *path)
{
    struct stat status;
    int fd;
    enum fail fail = open_regular(pack->job, dir, name, O_RDONLY, &fd, &status);
    if (fail == OK && (uint64_t)status.st_size > pack->left) {
        close(fd);
        fail = TOO_LARGE;
        pack->truncated = true;
    }
    if (fail != OK) {
        add_refusal(pack, path, fail);
        return;
    }
    pack->left -= (uint64_t)status.st_size;
    add_entry(pack, path, &status, NULL);
    add_content(pack, fd, (uint64_t)status.st_size);
    close(fd);
}

/* Counts an entry, also one that cannot be sent. False when no more may be sent. */
static bool count_item(struct pack *pack)
{
    if (pack->items == 0) {
        pack->truncated = true;
        return false;
    }
    pack->items--;
    return true;
}

static bool add(struct pack *pack, int dir, const char *name, const char *path)
{
    struct stat status;
    char target[PATH_MAX_BYTES + 1];
    if (!count_item(pack))
        return false;
    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0) {
        add_refusal(pack, path, fail_from_errno(errno));
    } else if (S_ISREG(status.st_mode)) {
        add_file(pack, dir, name, path);
    } else {
        ssize_t length = S_ISLNK(status.st_mode) ? readlinkat(dir, name, target, PATH_MAX_BYTES) : -1;
        target[length > 0 ? length : 0] = 0;
        add_entry(pack, path, &status, length > 0 ? target : NULL);
    }
    return !pack->broken;
}

static enum walk_verdict visit(void *context, const struct walk_entry *entry)
{
    return add(context, entry->dir, entry->name, entry->path) ? WALK_ON : WALK_STOP;
}

static bool add_below(struct pack *pack, const struct clean_path *path)
{
    int base;
    if (path_open_directory(path, true, &base) != OK)
        return true; /* not a directory, or gone by now */
    struct walk walk = {.context = pack, .visit = visit, .base_path = path->text, .max_depth = UINT64_MAX};
    walk_below(base, WALK_KEEP_MODE, &walk);
    pack->truncated = pack->truncated || walk.incomplete;
    return !pack->truncated && !pack->broken;
}

/* True while there is room for more. */
static bool add_named(struct pack *pack, const struct record *name)
{
    static struct clean_path path;
    char shown[PATH_MAX_BYTES + 1];
    struct place place = {.dir = -1};
    uint64_t flags = pack->job->request->flags;
    size_t length = min_size(name->length, PATH_MAX_BYTES);
    memcpy(shown, name->value, length);
    shown[length] = 0;
    enum fail fail = path_clean((const char *)name->value, name->length, &path);
    if (fail == OK)
        fail = path_resolve(&path, (flags & PACK_FOLLOW) != 0 ? PATH_FOLLOW : 0, &place);
    if (fail != OK) {
        if (!count_item(pack))
            return false;
        add_refusal(pack, shown, fail);
        return !pack->broken;
    }
    struct stat status;
    int error = fstatat(place.dir, place.name, &status, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
    bool below = error == 0 && S_ISDIR(status.st_mode) && (flags & PACK_RECURSIVE) != 0;
    /* The root itself has no name. */
    bool on = path.text[0] == 0 || add(pack, place.dir, place.name, path.text);
    close(place.dir);
    return on && (!below || add_below(pack, &path));
}

enum fail file_pack(struct job *job)
{
    static struct pack pack;
    const struct file_request *request = job->request;
    pack.job = job;
    pack.left = request->has_length ? request->length : UINT64_MAX;
    pack.items = request->has_max_items ? request->max_items : ITEMS_MOST;
    struct record_reader reader = {.at = job->payload, .left = job->payload_length};
    struct record record;
    for (bool on = true; on && record_next(&reader, &record);)
        if (record.tag == FILE_NAME)
            on = add_named(&pack, &record);
    flush(&pack);
    if (pack.broken)
        return INTERRUPTED;
    write_number(&job->done, DONE_COUNT, pack.count);
    write_number(&job->done, DONE_BYTES, pack.bytes);
    write_number(&job->done, DONE_TRUNCATED, pack.truncated);
    return OK;
}
