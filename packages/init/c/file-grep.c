#include "file-grep.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "glob.h"
#include "grep.h"
#include "items.h"
#include "job.h"
#include "path.h"
#include "walk.h"

enum {
    BINARY_LOOK = 8192,
    TEXT_DEFAULT = 1024,
    TEXT_MOST = 32768, /* with the path it stays well below a frame */
    BUFFER = 4 * GREP_LINE_MAX,
};

struct grep {
    struct job *job;
    struct items items;
    struct glob_set names, paths; /* includes without a slash, and with one */
    struct matcher *matcher;
    size_t text_most;
    uint64_t files, skipped;
};

/* Where to cut a text, so that no half character is left at the end. */
static size_t cut_at(const char *text, size_t most)
{
    size_t end = most;
    while (end > 0 && most - end < 4 && ((unsigned char)text[end] & 0xC0) == 0x80)
        end--;
    return end;
}

/* False when the bound is reached. */
static bool report(struct grep *grep, const char *path, uint64_t line, const char *text, size_t length, bool cut)
{
    if (!items_room(&grep->items))
        return false;
    if (length > grep->text_most) {
        length = cut_at(text, grep->text_most);
        cut = true;
    }
    items_add_line(&grep->items, path, line, text, length, cut);
    return !grep->items.broken;
}

/* Reads line by line through one buffer. Of a line longer than GREP_LINE_MAX only the beginning is searched, so that no file takes more
 * memory than this buffer. False when the search is over. */
static bool search_lines(struct grep *grep, int fd, uint64_t size, const char *path)
{
    static char buffer[BUFFER + 1];
    size_t head = 0, tail = 0;
    uint64_t line = 1, read_so_far = 0;
    bool skipping = false, ended = false, first = true;
    while (!ended || head < tail) {
        if (!ended && tail - head < GREP_LINE_MAX + 1) {
            memmove(buffer, buffer + head, tail - head);
            tail -= head;
            head = 0;
            size_t want = (size_t)min_u64(BUFFER - tail, size - read_so_far);
            ssize_t got = want == 0 ? 0 : read(fd, buffer + tail, want);
            if (got < 0 && errno == EINTR)
                continue;
            ended = got <= 0;
            tail += got > 0 ? (size_t)got : 0;
            read_so_far += got > 0 ? (uint64_t)got : 0;
            if (first && memchr(buffer, 0, min_size(tail, BINARY_LOOK)) != NULL) {
                grep->skipped++;
                return true;
            }
            first = false;
            if (!ended && tail - head < GREP_LINE_MAX + 1 && memchr(buffer + head, '\n', tail - head) == NULL)
                continue;
        }
        if (head == tail)
            break;
        char *start = buffer + head, *newline = memchr(start, '\n', tail - head);
        size_t length = newline != NULL ? (size_t)(newline - start) : tail - head;
        bool whole = newline != NULL || ended;
        if (!skipping) {
            size_t looked_at = min_size(length, GREP_LINE_MAX);
            bool cut = looked_at < length || !whole;
            if (matcher_matches(grep->matcher, start, looked_at) &&
                !report(grep, path, line, start, looked_at, cut))
                return false;
        }
        skipping = !whole;
        head += length + (newline != NULL);
        line += newline != NULL;
    }
    grep->files++;
    return true;
}

static bool search_file(struct grep *grep, int dir, const char *name, const char *path)
{
    struct stat status;
    int fd;
    if (open_regular(grep->job, dir, name, O_RDONLY, &fd, &status) != OK) {
        grep->job->error = 0;
        grep->skipped++;
        return true;
    }
    bool more = search_lines(grep, fd, (uint64_t)status.st_size, path);
    close(fd);
    return more;
}

static bool included(const struct grep *grep, const struct walk_entry *entry)
{
    if (grep->names.count == 0 && grep->paths.count == 0)
        return true;
    return glob_matches(&grep->names, entry->name, false) || glob_matches(&grep->paths, entry->path + entry->below, false);
}

static enum walk_verdict grep_entry(void *context, const struct walk_entry *entry)
{
    struct grep *grep = context;
    if (entry->type != 'f' || !included(grep, entry))
        return WALK_ON;
    return search_file(grep, entry->dir, entry->name, entry->path) ? WALK_ON : WALK_STOP;
}

static enum fail prepare(struct grep *grep)
{
    const struct file_request *request = grep->job->request;
    enum fail fail = OK;
    for (size_t i = 0; i < request->include_count; i++) {
        const struct text *include = &request->includes[i];
        bool has_slash = include->length > 0 && memchr(include->at, '/', include->length) != NULL;
        if (!glob_add(has_slash ? &grep->paths : &grep->names, include->at, include->length))
            return BAD_PATTERN;
    }
    grep->text_most = TEXT_DEFAULT;
    if (request->has_max_line_bytes)
        grep->text_most = (size_t)min_u64(request->max_line_bytes, TEXT_MOST);
    grep->matcher = matcher_new(request, &fail, &grep->job->message);
    return grep->matcher == NULL ? fail : OK;
}

/* Searches the included files of a directory, or the one file that the path names, whether or not it is included. */
static enum fail search(struct grep *grep, const struct clean_path *path)
{
    struct job *job = grep->job;
    struct place place;
    struct stat status;
    enum fail fail = path_resolve(path, PATH_FOLLOW, &place);
    if (fail != OK)
        return fail;
    const char *name = place.name[0] == 0 ? "." : place.name;
    struct walk walk = {.context = grep, .visit = grep_entry, .base_path = path->text, .max_depth = UINT64_MAX};
    int error = 0, base = -1;
    if (fstatat(place.dir, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        error = errno;
    else if (S_ISREG(status.st_mode))
        search_file(grep, place.dir, name, path->text);
    else if (!S_ISDIR(status.st_mode))
        fail = NOT_A_FILE;
    else if ((base = openat(place.dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        error = errno;
    else
        error = walk_below(base, WALK_KEEP_MODE, &walk);
    close(place.dir);
    if (error != 0)
        fail = failed(job, error);
    return fail == OK ? items_end(&grep->items, job, walk.incomplete) : fail;
}

enum fail file_grep(struct job *job)
{
    struct clean_path path;
    struct grep grep = {.job = job, .names = {.dot = true}, .paths = {.dot = true}};
    enum fail fail = path_clean(job->request->path.at, job->request->path.length, &path);
    if (fail == OK)
        fail = prepare(&grep);
    if (fail != OK)
        return fail;
    items_begin(&grep.items, job);
    fail = search(&grep, &path);
    if (fail != OK)
        return fail;
    write_number(&job->done, DONE_FILES, grep.files);
    write_number(&job->done, DONE_SKIPPED, grep.skipped);
    return OK;
}
