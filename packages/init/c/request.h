/* EXEC and FILE payloads, checked and in the shape the rest of init wants them. */
#ifndef BERTH_REQUEST_H
#define BERTH_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fail.h"
#include "protocol.h"

/* The strings point into the payload, which parsing cuts into NUL-terminated pieces. */
struct exec_request {
    char **argv; /* one allocation holds argv and envp */
    char **envp;
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

/* `payload` must have one writable byte behind its end. Frees nothing on success: call exec_request_free. */
enum fail exec_request_parse(uint8_t *payload, size_t length, struct exec_request *out);
void exec_request_free(struct exec_request *request);

enum fail file_request_parse(uint8_t *payload, size_t length, struct file_request *out);

/* A payload whose only record is one number under SINGLE_NUMBER. */
bool single_number(const uint8_t *payload, size_t length, uint64_t *out);

#endif
