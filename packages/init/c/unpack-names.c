#include <stdio.h>
#include <string.h>

#include "unpack.h"

static const char *path_problem(const struct unpack *unpack, const char *name)
{
    if (name[0] == '/' && !unpack->each)
        return "it is absolute";
    for (const char *at = name; *at != 0; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7F)
            return "it has a control byte";
    for (const char *at = name; at != NULL; at = strchr(at, '/')) {
        at += *at == '/';
        size_t size = strcspn(at, "/");
        if (size == 2 && at[0] == '.' && at[1] == '.')
            return "it has a \"..\" segment";
        if (size > NAME_MAX_BYTES)
            return "it has a name longer than 255 bytes";
    }
    if (strlen(unpack->base) + 1 + strlen(name) > PATH_MAX_BYTES)
        return "it is longer than 4095 bytes";
    return NULL;
}

bool unpack_entry_path(struct unpack *unpack, const char *name, struct clean_path *out)
{
    char joined[PATH_MAX_BYTES + 1], text[TAR_PROBLEM_MAX];
    const char *problem = path_problem(unpack, name);
    if (problem == NULL) {
        bool bare = unpack->base[0] == 0 || name[0] == '/';
        int length = snprintf(joined, sizeof joined, "%s%s%s", bare ? "" : unpack->base, bare ? "" : "/", name);
        if (path_clean(joined, (size_t)length, out) == OK)
            return true;
        problem = "it leads out of the workspace";
    }
    snprintf(text, sizeof text, "the path \"%.120s\" is not allowed: %s", name, problem);
    return tar_refuse(&unpack->tar, "%s", text);
}

/* Whether the target of a link at that depth beneath its root stays beneath the root. */
static bool leads_inside(const char *target, size_t depth)
{
    for (const char *at = target; *at != 0;) {
        size_t size = strcspn(at, "/");
        bool up = size == 2 && at[0] == '.' && at[1] == '.';
        if (up && depth == 0)
            return false;
        if (up)
            depth--;
        else if (size > 0 && !(size == 1 && at[0] == '.'))
            depth++;
        at += size;
        at += *at == '/';
    }
    return true;
}

static bool symlink_inside(const char *target, const char *path)
{
    size_t depth = 0, root;
    for (const char *at = path; *at != 0; at++)
        depth += *at == '/';
    if (target[0] != '/')
        return leads_inside(target, depth);
    const char *rest = path_below_root(target, &root);
    return rest != NULL && leads_inside(rest, 0);
}

/* Copies a symlink's target as it is written, and a hard link's as a path from the root. Refuses a link that leads out of the root: init would
 * not follow it, but programs would where the workspace is copied to. */
bool unpack_target(struct unpack *unpack, const struct tar_entry *entry, const struct clean_path *path,
                   char target[PATH_MAX_BYTES + 1])
{
    static struct clean_path clean;
    target[0] = 0;
    if (entry->type == 'h') {
        if (!unpack_entry_path(unpack, entry->target, &clean))
            return false;
        memcpy(target, clean.text, strlen(clean.text) + 1);
        return true;
    }
    if (entry->type != 'l')
        return true;
    size_t length = strlen(entry->target);
    if (length > 0 && length <= PATH_MAX_BYTES && symlink_inside(entry->target, path->text)) {
        memcpy(target, entry->target, length + 1);
        return true;
    }
    char text[TAR_PROBLEM_MAX];
    snprintf(text, sizeof text, "%.100s is a link that leads out of the workspace, to \"%.100s\"", path->text, entry->target);
    return tar_refuse(&unpack->tar, "%s", text);
}

static bool refuse_two(struct unpack *unpack, const char *format, const char *one, const char *other)
{
    char text[TAR_PROBLEM_MAX];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, format, one, other);
#pragma GCC diagnostic pop
    return tar_refuse(&unpack->tar, "%s", text);
}

bool unpack_check_plan(struct unpack *unpack)
{
    const struct plan *plan = &unpack->plan;
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_entry *entry = &plan->entries[i];
        for (const char *slash = strchr(entry->path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
            const struct plan_entry *above = plan_find(plan, entry->path, (size_t)(slash - entry->path));
            if (above != NULL && above->type != 'd')
                return refuse_two(unpack, "%.120s is beneath %.100s, which is not a directory in it", entry->path, above->path);
        }
        const struct plan_entry *target = entry->type == 'h' ? plan_find(plan, entry->target, strlen(entry->target)) : NULL;
        if (entry->type == 'h' && (target == NULL || target->type != 'f'))
            return refuse_two(unpack, "%.120s is a hard link to %.100s, which is not a file in it", entry->path, entry->target);
    }
    return true;
}
