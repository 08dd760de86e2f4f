/* Parses and checks the payloads of EXEC and FILE. */
#ifndef BERTH_REQUEST_H
#define BERTH_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fail.h"
#include "protocol.h"

struct exec_request {
    size_t arg_count, env_count;
    const char *cwd;
    size_t cwd_length;
    uint64_t flags;
    uint64_t timeout_ms;
    uint64_t grace_ms;
    uint64_t drain_ms;
    uint64_t credit;
};

struct text {
    const char *at;
    size_t length;
};

enum { PATTERNS_MAX = 64 };

struct file_request {
    enum file_op op;
    bool has_path, has_path2, has_length, has_mode, has_size, has_sha256, has_max_items, has_budget, has_max_depth,
        has_max_line_bytes;
    struct text path, path2;
    uint64_t flags, offset, length, mode, size, credit, max_items, budget, max_depth, max_line_bytes;
    const uint8_t *sha256;
    struct text patterns[PATTERNS_MAX];
    size_t pattern_count;
    struct text includes[PATTERNS_MAX];
    size_t include_count;
};

enum fail exec_request_parse(const uint8_t *payload, size_t length, struct exec_request *out);

/* argv and envp of a parsed request, in one allocation; NULL without memory. The strings lie in the payload, which is cut into
 * NUL-terminated pieces and cannot be parsed again. One byte behind its end must be writable. */
char **exec_request_vectors(uint8_t *payload, size_t length, const struct exec_request *request, char ***envp);

enum fail file_request_parse(const uint8_t *payload, size_t length, struct file_request *out);

/* Reads a payload that has one number under this tag. False when it is absent, malformed or there twice. */
bool single_number(const uint8_t *payload, size_t length, uint8_t tag, uint64_t *out);

#endif
