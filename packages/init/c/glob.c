#include "glob.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 4096, BRACES_DEEP = 16 };

/* Matches one `[…]`. Returns the text after it, or NULL if it is never closed: then `[` is an ordinary character. */
static const char *match_set(const char *at, unsigned char c, bool *matched)
{
    bool negated = at[1] == '!' || at[1] == '^';
    const char *first = at + (negated ? 2 : 1), *p = first;
    bool found = false;
    for (; *p != ']' || p == first; p++) {
        if (*p == '\\' && p[1] != 0)
            p++;
        if (*p == 0)
            return NULL;
        unsigned char low = (unsigned char)*p, high = low;
        if (p[1] == '-' && p[2] != ']' && p[2] != 0) {
            p += p[2] == '\\' && p[3] != 0 ? 3 : 2;
            high = (unsigned char)*p;
        }
        found = found || (low <= c && c <= high);
    }
    *matched = found != negated;
    return p + 1;
}

/* `?` matches a whole character: its first byte and the bytes that continue it in UTF-8. */
static const char *after_character(const char *at)
{
    bool many = (unsigned char)*at++ >= 0xC0;
    while (many && ((unsigned char)*at & 0xC0) == 0x80)
        at++;
    return at;
}

/* Matches one pattern character with the name; advances both, or returns false. */
static bool match_one(const char **pattern, const char **name)
{
    const char *p = *pattern, *n = *name;
    bool matched = false;
    if (*n == 0)
        return false;
    if (*p == '?') {
        *pattern = p + 1;
        *name = after_character(n);
        return true;
    }
    if (*p == '[') {
        const char *after = match_set(p, (unsigned char)*n, &matched);
        if (after != NULL) {
            *pattern = after;
            *name = n + 1;
            return matched;
        }
    }
    if (*p == '\\' && p[1] != 0)
        p++;
    if (*p != *n)
        return false;
    *pattern = p + 1;
    *name = n + 1;
    return true;
}

/* Backtracks only to the last `*`, so the time is bounded by the product of the lengths. */
static bool match_name(const char *pattern, const char *name, bool dot)
{
    if (name[0] == '.' && !dot && pattern[0] != '.' && !(pattern[0] == '\\' && pattern[1] == '.'))
        return false;
    const char *star = NULL, *retry = NULL;
    for (;;) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (*pattern == 0 && *name == 0) {
            return true;
        } else if (*pattern == 0 || !match_one(&pattern, &name)) {
            if (star == NULL || *retry == 0)
                return false;
            pattern = star;
            name = ++retry;
        }
    }
}

static bool is_double_star(const char *name)
{
    return name[0] == '*' && name[1] == '*' && name[2] == 0;
}

/* `states[i]`: the first i names of the pattern match the names of the path so far. Computes the states after the whole path. */
static void run(const struct glob *glob, const char *path, bool dot, bool states[GLOB_NAMES_MAX + 1])
{
    char name[256];
    memset(states, 0, GLOB_NAMES_MAX + 1);
    states[0] = true;
    for (;;) {
        for (size_t i = 0; i < glob->count; i++)
            if (states[i] && is_double_star(glob->names[i]))
                states[i + 1] = true;
        size_t size = strcspn(path, "/");
        if (size == 0 || size >= sizeof name)
            return;
        memcpy(name, path, size);
        name[size] = 0;
        path += size;
        path += *path == '/';
        for (size_t i = glob->count + 1; i-- > 0;) {
            bool stays = i < glob->count && states[i] && is_double_star(glob->names[i]) && (dot || name[0] != '.');
            bool comes = i > 0 && states[i - 1] && !is_double_star(glob->names[i - 1]) &&
                         match_name(glob->names[i - 1], name, dot);
            states[i] = stays || comes;
        }
    }
}

bool glob_matches(const struct glob_set *set, const char *path, bool is_directory)
{
    bool states[GLOB_NAMES_MAX + 1];
    for (size_t i = 0; i < set->count; i++) {
        if (set->globs[i].directories_only && !is_directory)
            continue;
        run(&set->globs[i], path, set->dot, states);
        if (states[set->globs[i].count])
            return true;
    }
    return false;
}

bool glob_leads_below(const struct glob_set *set, const char *path)
{
    bool states[GLOB_NAMES_MAX + 1];
    for (size_t i = 0; i < set->count; i++) {
        run(&set->globs[i], path, set->dot, states);
        for (size_t j = 0; j < set->globs[i].count; j++)
            if (states[j])
                return true;
    }
    return false;
}

static bool add_name(struct glob *glob, char *name)
{
    if (strcmp(name, ".") == 0 || name[0] == 0)
        return true;
    if (strcmp(name, "..") == 0 || glob->count == GLOB_NAMES_MAX)
        return false;
    glob->names[glob->count++] = name;
    return true;
}

/* Adds a pattern without braces. Cuts the text at its slashes. */
static bool add_plain(struct glob_set *set, const char *text)
{
    static char any[] = "*";
    if (set->count == GLOB_PATTERNS_MAX || text[0] == '/' || text[0] == 0)
        return false;
    if (set->globs == NULL && (set->globs = calloc(GLOB_PATTERNS_MAX, sizeof *set->globs)) == NULL)
        return false;
    struct glob *glob = &set->globs[set->count];
    memset(glob, 0, sizeof *glob);
    if ((glob->text = strdup(text)) == NULL)
        return false;
    set->count++;
    size_t length = strlen(text);
    glob->directories_only = text[length - 1] == '/';
    for (char *at = glob->text, *slash; at != NULL; at = slash) {
        slash = strchr(at, '/');
        if (slash != NULL)
            *slash++ = 0;
        if (!add_name(glob, at))
            return false;
    }
    /* A pattern that ends in a double star needs one more name: it does not match the directory before it. */
    if (glob->count > 0 && is_double_star(glob->names[glob->count - 1]))
        return add_name(glob, any);
    return glob->count > 0;
}

/* The brace that closes the one at `open`, or NULL. Sets `commas` if there are alternatives between them. */
static const char *closing(const char *open, bool *commas)
{
    int depth = 0;
    *commas = false;
    for (const char *p = open; *p != 0; p++) {
        if (*p == '\\' && p[1] != 0)
            p++;
        else if (*p == '{')
            depth++;
        else if (*p == ',' && depth == 1)
            *commas = true;
        else if (*p == '}' && --depth == 0)
            return p;
    }
    return NULL;
}

static bool add_expanded(struct glob_set *set, const char *text, int deep);

/* Adds each alternative between `open` and `close`, with the text before and behind. */
static bool add_alternatives(struct glob_set *set, const char *text, const char *open, const char *close, int deep)
{
    int depth = 0;
    for (const char *start = open + 1, *p = start;; p++) {
        if (*p == '\\' && p[1] != 0) {
            p++;
            continue;
        }
        if (*p == '{')
            depth++;
        if (*p == '}' && p != close)
            depth--;
        if (p != close && (*p != ',' || depth > 0))
            continue;
        char whole[TEXT_MAX];
        size_t before = (size_t)(open - text), size = (size_t)(p - start), behind = strlen(close + 1);
        if (before + size + behind >= sizeof whole)
            return false;
        memcpy(whole, text, before);
        memcpy(whole + before, start, size);
        memcpy(whole + before + size, close + 1, behind + 1);
        if (!add_expanded(set, whole, deep + 1))
            return false;
        if (p == close)
            return true;
        start = p + 1;
    }
}

static bool add_expanded(struct glob_set *set, const char *text, int deep)
{
    for (const char *p = text; *p != 0; p++) {
        bool commas;
        if (*p == '\\' && p[1] != 0) {
            p++;
            continue;
        }
        if (*p != '{')
            continue;
        const char *close = closing(p, &commas);
        if (close != NULL && commas)
            return deep < BRACES_DEEP && add_alternatives(set, text, p, close, deep);
    }
    return add_plain(set, text);
}

bool glob_add(struct glob_set *set, const char *pattern, size_t length)
{
    char text[TEXT_MAX];
    if (length >= sizeof text)
        return false;
    memcpy(text, pattern, length);
    text[length] = 0;
    return add_expanded(set, text, 0);
}

void glob_free(struct glob_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->globs[i].text);
    free(set->globs);
    *set = (struct glob_set){.globs = NULL};
}
