#include "fail.h"

#include <errno.h>
#include <string.h>

#include "protocol.h"
#include "record.h"

static const struct {
    const char *code;
    const char *sentence;
} table[FAIL_COUNT] = {
    [OK] = {"ok", "no failure"},
    [BAD_REQUEST] = {"bad-request", "the request is malformed"},
    [BUSY] = {"busy", "too many channels are open"},
    [LEASE_OVER] = {"lease-over", "the worker's lease is over, and it has not renewed it since"},
    [FORK_FAILED] = {"fork-failed", "no process could be made"},
    [COMMAND_NOT_FOUND] = {"command-not-found", "the program was not found"},
    [NOT_EXECUTABLE] = {"not-executable", "the program cannot be executed"},
    [TOO_LONG] = {"too-long", "arguments and environment are too long"},
    [INVALID_PATH] = {"invalid-path", "the path is not acceptable"},
    [OUTSIDE_WORKSPACE] = {"outside-workspace", "the path leads out of the workspace"},
    [NOT_FOUND] = {"not-found", "no such file or directory"},
    [NOT_A_FILE] = {"not-a-file", "not a regular file"},
    [NOT_A_DIRECTORY] = {"not-a-directory", "not a directory"},
    [IS_A_DIRECTORY] = {"is-a-directory", "is a directory"},
    [EXISTS] = {"exists", "already exists"},
    [NOT_EMPTY] = {"not-empty", "the directory is not empty"},
    [DENIED] = {"denied", "permission denied"},
    [NO_SPACE] = {"no-space", "no space left, or a size limit was reached"},
    [QUOTA] = {"quota", "the file would grow past the budget"},
    [MISMATCH] = {"mismatch", "the existing content has another sha256"},
    [SHORT] = {"short", "the number of bytes is not the one that was announced"},
    [TOO_MANY_LINKS] = {"too-many-links", "too many symbolic links"},
    [BAD_PATTERN] = {"bad-pattern", "the pattern is not valid"},
    [BAD_ARCHIVE] = {"bad-archive", "the archive cannot be read"},
    [TOO_LARGE] = {"too-large", "it holds more than was asked for"},
    [INTERRUPTED] = {"interrupted", "the operation's process died"},
    [IO] = {"io", "input or output error"},
};

const char *fail_code(enum fail fail)
{
    return table[fail].code;
}

const char *fail_sentence(enum fail fail)
{
    return table[fail].sentence;
}

enum fail fail_from_errno(int error)
{
    switch (error) {
    case ENOENT: return NOT_FOUND;
    case ENOTDIR: return NOT_A_DIRECTORY;
    case EISDIR: return IS_A_DIRECTORY;
    case EEXIST: return EXISTS;
    case ENOTEMPTY: return NOT_EMPTY;
    case EACCES:
    case EPERM:
    case EROFS: return DENIED;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return NO_SPACE;
    case ELOOP: return TOO_MANY_LINKS;
    case ENAMETOOLONG:
    case EINVAL: return INVALID_PATH;
    case EAGAIN:
    case ENXIO:
    case ENODEV: return NOT_A_FILE;
    default: return IO;
    }
}

size_t fail_payload(uint8_t out[FAIL_PAYLOAD_MAX], enum fail fail, const char *message, int error)
{
    struct record_writer writer = {.buffer = out, .capacity = FAIL_PAYLOAD_MAX};
    write_text(&writer, FAIL_CODE, fail_code(fail));
    if (message == NULL)
        message = fail_sentence(fail);
    size_t length = strlen(message);
    write_bytes(&writer, FAIL_MESSAGE, message, length > 300 ? 300 : length);
    if (error != 0)
        write_number(&writer, FAIL_ERRNO, (uint64_t)error);
    return writer.length;
}
