/* Why an operation failed: the codes of FAIL, and the code of each errno. */
#ifndef BERTH_FAIL_H
#define BERTH_FAIL_H

#include <stddef.h>
#include <stdint.h>

enum fail {
    OK = 0,
    BAD_REQUEST,
    BUSY,
    LEASE_OVER,
    FORK_FAILED,
    COMMAND_NOT_FOUND,
    NOT_EXECUTABLE,
    TOO_LONG,
    INVALID_PATH,
    OUTSIDE_WORKSPACE,
    NOT_FOUND,
    NOT_A_FILE,
    NOT_A_DIRECTORY,
    IS_A_DIRECTORY,
    EXISTS,
    NOT_EMPTY,
    DENIED,
    NO_SPACE,
    QUOTA,
    MISMATCH,
    SHORT,
    TOO_MANY_LINKS,
    BAD_PATTERN,
    BAD_ARCHIVE,
    TOO_LARGE,
    INTERRUPTED,
    IO,
    FAIL_COUNT,
};

const char *fail_code(enum fail fail);
const char *fail_sentence(enum fail fail);

/* For errors of file calls. An errno without a code of its own is IO. */
enum fail fail_from_errno(int error);

/* The payload of FAIL. The sentence is the code's own when `message` is NULL; errno is left out when 0. */
enum { FAIL_PAYLOAD_MAX = 512 };
size_t fail_payload(uint8_t out[FAIL_PAYLOAD_MAX], enum fail fail, const char *message, int error);

#endif
