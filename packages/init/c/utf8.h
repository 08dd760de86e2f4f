#ifndef BERTH_UTF8_H
#define BERTH_UTF8_H

#include <stdbool.h>

/* As the decoders of the worker's side take it: no surrogates, nothing longer than it must be. */
bool utf8_is_valid(const char *text);

#endif
