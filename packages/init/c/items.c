#include "items.h"

#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "path.h"

static uint8_t block[FRAME_PAYLOAD_MAX];

void items_begin(struct items *items, const struct job *job)
{
    *items = (struct items){.out = job->out};
    items->most = job->request->has_max_items ? job->request->max_items : ITEMS_MOST;
}

bool items_room(struct items *items)
{
    if (items->count < items->most)
        return true;
    items->truncated = true;
    return false;
}

static void flush(struct items *items)
{
    if (items->used > 0 && !write_all(items->out, block, items->used))
        items->broken = true;
    items->used = 0;
}

/* Room for one more item behind its length. Sends the block first if the item might not fit. */
static struct record_writer begin_item(struct items *items, size_t most)
{
    if (sizeof block - items->used < 4 + most)
        flush(items);
    return (struct record_writer){.buffer = block + items->used + 4, .capacity = sizeof block - items->used - 4};
}

static void end_item(struct items *items, const struct record_writer *writer)
{
    if (writer->overflow)
        return;
    put_u32(block + items->used, (uint32_t)writer->length);
    items->used += 4 + writer->length;
    items->count++;
}

void items_add_file(struct items *items, const char *path, const struct stat *status, int dir, const char *name)
{
    struct record_writer writer = begin_item(items, 2 * PATH_MAX_BYTES + 128);
    char type = type_letter(status->st_mode), target[PATH_MAX_BYTES + 1];
    write_text(&writer, ITEM_PATH, path);
    write_bytes(&writer, ITEM_TYPE, &type, 1);
    write_number(&writer, ITEM_SIZE, (uint64_t)status->st_size);
    write_number(&writer, ITEM_MODE, status->st_mode & 07777);
    write_number(&writer, ITEM_MTIME_MS, mtime_ms(status));
    ssize_t length = type == 'l' ? readlinkat(dir, name, target, sizeof target - 1) : -1;
    if (length >= 0)
        write_bytes(&writer, ITEM_TARGET, target, (size_t)length);
    end_item(items, &writer);
}

void items_add_line(struct items *items, const char *path, uint64_t line, const char *text, size_t length, bool cut)
{
    struct record_writer writer = begin_item(items, PATH_MAX_BYTES + length + 128);
    write_text(&writer, ITEM_PATH, path);
    write_number(&writer, ITEM_LINE, line);
    write_bytes(&writer, ITEM_TEXT, text, length);
    if (cut)
        write_number(&writer, ITEM_CUT, 1);
    end_item(items, &writer);
}

void items_add_refusal(struct items *items, const char *path, enum fail fail, const char *text)
{
    struct record_writer writer = begin_item(items, 2 * PATH_MAX_BYTES + 512);
    write_text(&writer, ITEM_PATH, path);
    write_text(&writer, ITEM_CODE, fail_code(fail));
    write_text(&writer, ITEM_TEXT, text);
    end_item(items, &writer);
}

enum fail items_end(struct items *items, struct job *job, bool incomplete)
{
    flush(items);
    if (items->broken)
        return INTERRUPTED;
    write_number(&job->done, DONE_COUNT, items->count);
    write_number(&job->done, DONE_TRUNCATED, items->truncated || incomplete);
    return OK;
}
