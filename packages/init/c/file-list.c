#include <fcntl.h>

#include "items.h"
#include "job.h"
#include "path.h"
#include "walk.h"

static enum walk_verdict list_entry(void *context, const struct walk_entry *entry)
{
    struct items *items = context;
    struct stat status;
    if (fstatat(entry->dir, entry->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return WALK_SKIP;
    if (!items_room(items))
        return WALK_STOP;
    items_add_file(items, entry->path, &status, entry->dir, entry->name);
    return items->broken ? WALK_STOP : WALK_ON;
}

enum fail file_list(struct job *job)
{
    const struct file_request *request = job->request;
    struct clean_path path;
    struct items items;
    int base;
    enum fail fail = path_clean(request->path.at, request->path.length, &path);
    if (fail == OK)
        fail = path_open_directory(&path, true, &base);
    if (fail != OK)
        return fail;
    items_begin(&items, job);
    struct walk walk = {.context = &items, .visit = list_entry, .base_path = path.text, .max_depth = 1};
    if ((request->flags & LIST_RECURSIVE) != 0)
        walk.max_depth = request->has_max_depth ? request->max_depth : UINT64_MAX;
    int error = walk_below(base, WALK_KEEP_MODE, &walk);
    return error != 0 ? failed(job, error) : items_end(&items, job, walk.incomplete);
}
