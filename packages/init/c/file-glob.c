#include <fcntl.h>

#include "glob.h"
#include "items.h"
#include "job.h"
#include "path.h"
#include "walk.h"

struct search {
    struct items items;
    struct glob_set globs;
};

static enum walk_verdict glob_entry(void *context, const struct walk_entry *entry)
{
    struct search *search = context;
    const char *below = entry->path + entry->below;
    struct stat status;
    if (glob_matches(&search->globs, below, entry->type == 'd') &&
        fstatat(entry->dir, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!items_room(&search->items))
            return WALK_STOP;
        items_add_file(&search->items, entry->path, &status, entry->dir, entry->name);
    }
    if (search->items.broken)
        return WALK_STOP;
    return entry->type == 'd' && !glob_leads_below(&search->globs, below) ? WALK_SKIP : WALK_ON;
}

enum fail file_glob(struct job *job)
{
    const struct file_request *request = job->request;
    struct clean_path path;
    struct search search = {.globs = {.dot = (request->flags & GLOB_DOT) != 0}};
    int base;
    enum fail fail = path_clean(request->path.at, request->path.length, &path);
    for (size_t i = 0; fail == OK && i < request->pattern_count; i++)
        if (!glob_add(&search.globs, request->patterns[i].at, request->patterns[i].length))
            fail = BAD_PATTERN;
    if (fail == OK)
        fail = path_open_directory(&path, true, &base);
    if (fail != OK)
        return fail;
    items_begin(&search.items, job);
    struct walk walk = {.context = &search, .visit = glob_entry, .base_path = path.text, .max_depth = UINT64_MAX};
    int error = walk_below(base, WALK_KEEP_MODE, &walk);
    return error != 0 ? failed(job, error) : items_end(&search.items, job, walk.incomplete);
}
