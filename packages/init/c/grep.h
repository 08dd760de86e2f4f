/* Whether a line matches: a fixed string or a POSIX extended regular expression, with or without regard to case. */
#ifndef BERTH_GREP_H
#define BERTH_GREP_H

#include <stdbool.h>
#include <stddef.h>

#include "fail.h"
#include "request.h"

struct matcher;

/* NULL with a reason: BAD_PATTERN with the C library's message, or IO without memory. */
struct matcher *matcher_new(const struct file_request *request, enum fail *why, const char **message);

/* `line` has one writable byte behind its end. */
bool matcher_matches(const struct matcher *matcher, char *line, size_t length);

#endif
