/*
 * Glob patterns on paths: `*` and `?` within a name, `[a-z]` `[!a-z]`, `**` for any number of directories, `{a,b}`, `\` before
 * a character to take it as it is. A slash at the end matches directories only.
 */
#ifndef BERTH_GLOB_H
#define BERTH_GLOB_H

#include <stdbool.h>
#include <stddef.h>

enum {
    GLOB_PATTERNS_MAX = 512, /* after braces are expanded, over all patterns of a request */
    GLOB_NAMES_MAX = 64,     /* names between slashes in one pattern */
};

struct glob {
    char *text; /* the names, each NUL-terminated */
    char *names[GLOB_NAMES_MAX];
    size_t count;
    bool directories_only;
};

struct glob_set {
    struct glob *globs;
    size_t count;
    bool dot; /* `*`, `?` and `[` match a leading dot too */
};

/* Adds a pattern. False when it is not one: empty, absolute, with `..`, or expanding to too many. */
bool glob_add(struct glob_set *set, const char *pattern, size_t length);
void glob_free(struct glob_set *set);

bool glob_matches(const struct glob_set *set, const char *path, bool is_directory);

/* Whether anything below this directory could match. */
bool glob_leads_below(const struct glob_set *set, const char *path);

#endif
