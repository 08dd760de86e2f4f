#include "grep.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "file-grep.h"

struct matcher {
    bool is_regex, ignore_case;
    regex_t regex;
    char *fixed;
    size_t fixed_length;
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

struct matcher *matcher_new(const struct file_request *request, enum fail *why, const char **message)
{
    static char sentence[200];
    const struct text *pattern = &request->patterns[0];
    struct matcher *matcher = calloc(1, sizeof *matcher);
    char *text = malloc(pattern->length + 1);
    *why = IO;
    if (matcher == NULL || text == NULL) {
        free(matcher);
        free(text);
        return NULL;
    }
    memcpy(text, pattern->at, pattern->length);
    text[pattern->length] = 0;
    matcher->ignore_case = (request->flags & GREP_IGNORE_CASE) != 0;
    matcher->is_regex = (request->flags & GREP_REGEX) != 0;
    if (matcher->is_regex) {
        int error = regcomp(&matcher->regex, text, REG_EXTENDED | REG_NOSUB | (matcher->ignore_case ? REG_ICASE : 0));
        free(text);
        if (error == 0)
            return matcher;
        regerror(error, &matcher->regex, sentence, sizeof sentence);
        *message = sentence;
        *why = error == REG_ESPACE ? IO : BAD_PATTERN;
        free(matcher);
        return NULL;
    }
    for (size_t i = 0; matcher->ignore_case && i < pattern->length; i++)
        text[i] = lower(text[i]);
    matcher->fixed = text;
    matcher->fixed_length = pattern->length;
    return matcher;
}

bool matcher_matches(const struct matcher *matcher, char *line, size_t length)
{
    if (matcher->is_regex) {
        char behind = line[length];
        line[length] = 0;
        bool matched = regexec(&matcher->regex, line, 0, NULL, 0) == 0;
        line[length] = behind;
        return matched;
    }
    if (!matcher->ignore_case)
        return memmem(line, length, matcher->fixed, matcher->fixed_length) != NULL;
    static char folded[GREP_LINE_MAX];
    for (size_t i = 0; i < length; i++)
        folded[i] = lower(line[i]);
    return memmem(folded, length, matcher->fixed, matcher->fixed_length) != NULL;
}
