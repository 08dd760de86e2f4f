/* Unpacks gzip (RFC 1951 and 1952) from a source to a sink. The lengths in the archive are not trusted. */
#ifndef BERTH_INFLATE_H
#define BERTH_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gunzip {
    void *context;
    /* The next bytes, valid until the next call. 0 at the end. */
    size_t (*more)(void *context, const uint8_t **at);
    /* False stops the unpacking. */
    bool (*emit)(void *context, const uint8_t *bytes, size_t length);
    /* Set when gunzip_run returns false because of the data; NULL when the sink stopped it. */
    const char *problem;
};

/* Every member of the stream. What follows the last is ignored. */
bool gunzip_run(struct gunzip *gunzip);

#endif
