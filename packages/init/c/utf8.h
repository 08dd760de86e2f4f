#ifndef BERTH_UTF8_H
#define BERTH_UTF8_H

#include <stdbool.h>

/* By the same rules as the worker's decoder: no surrogates, no overlong forms. */
bool utf8_is_valid(const char *text);

#endif
