#include "request.h"

#include <stdlib.h>
#include <string.h>

#include "record.h"

bool single_number(const uint8_t *payload, size_t length, uint8_t tag, uint64_t *out)
{
    struct record_reader reader = {.at = payload, .left = length};
    struct record record;
    bool found = false;
    while (record_next(&reader, &record)) {
        if (record.tag != tag)
            continue;
        if (found || !record_number(&record, out))
            return false;
        found = true;
    }
    return found && !reader.malformed;
}

static bool has_nul(const struct record *record)
{
    return record->length > 0 && memchr(record->value, 0, record->length) != NULL;
}

static bool take_number(const struct record *record, bool *seen, uint64_t *out)
{
    if (*seen)
        return false;
    *seen = true;
    return record_number(record, out);
}

static bool env_is_pair(const struct record *record)
{
    const uint8_t *equals = record->length > 0 ? memchr(record->value, '=', record->length) : NULL;
    return equals != NULL && equals != record->value;
}

enum fail exec_request_parse(const uint8_t *payload, size_t length, struct exec_request *out)
{
    memset(out, 0, sizeof *out);
    out->cwd = "";
    struct record_reader reader = {.at = payload, .left = length};
    struct record record;
    bool seen[EXEC_CREDIT + 1] = {false};
    while (record_next(&reader, &record)) {
        bool good = true;
        switch (record.tag) {
        case EXEC_ARG:
            good = !has_nul(&record);
            out->arg_count++;
            break;
        case EXEC_ENV:
            good = !has_nul(&record) && env_is_pair(&record);
            out->env_count++;
            break;
        case EXEC_CWD:
            good = !seen[EXEC_CWD];
            seen[EXEC_CWD] = true;
            out->cwd = (const char *)record.value;
            out->cwd_length = record.length;
            break;
        case EXEC_FLAGS: good = take_number(&record, &seen[record.tag], &out->flags); break;
        case EXEC_TIMEOUT_MS: good = take_number(&record, &seen[record.tag], &out->timeout_ms); break;
        case EXEC_GRACE_MS: good = take_number(&record, &seen[record.tag], &out->grace_ms); break;
        case EXEC_DRAIN_MS: good = take_number(&record, &seen[record.tag], &out->drain_ms); break;
        case EXEC_CREDIT: good = take_number(&record, &seen[record.tag], &out->credit); break;
        default: break;
        }
        if (!good)
            return BAD_REQUEST;
    }
    return reader.malformed || out->arg_count == 0 ? BAD_REQUEST : OK;
}

char **exec_request_vectors(uint8_t *payload, size_t length, const struct exec_request *request, char ***envp)
{
    size_t args = request->arg_count, envs = request->env_count;
    char **argv = malloc((args + envs + 2) * sizeof *argv);
    if (argv == NULL)
        return NULL;
    *envp = argv + args + 1;
    argv[args] = (*envp)[envs] = NULL;
    struct record_reader reader = {.at = payload, .left = length};
    struct record record;
    uint8_t *end = NULL;
    for (size_t arg = 0, env = 0; record_next(&reader, &record);) {
        uint8_t *start = payload + (record.value - payload);
        /* The byte behind the last value is this record's tag, which was read already. */
        if (end != NULL)
            *end = 0;
        end = NULL;
        if (record.tag == EXEC_ARG)
            argv[arg++] = (char *)start;
        else if (record.tag == EXEC_ENV)
            (*envp)[env++] = (char *)start;
        else
            continue;
        end = start + record.length;
    }
    if (end != NULL)
        *end = 0;
    return argv;
}

static bool take_text(const struct record *record, bool *seen, struct text *out)
{
    if (seen != NULL) {
        if (*seen)
            return false;
        *seen = true;
    }
    out->at = (const char *)record->value;
    out->length = record->length;
    return true;
}

static bool take_pattern(const struct record *record, struct text *list, size_t *count)
{
    return *count < PATTERNS_MAX && !has_nul(record) && take_text(record, NULL, &list[(*count)++]);
}

static bool file_take(const struct record *record, struct file_request *out, uint64_t *op, bool *op_seen,
                      bool seen_once[3])
{
    switch (record->tag) {
    case FILE_OP: return take_number(record, op_seen, op);
    case FILE_PATH: return take_text(record, &out->has_path, &out->path);
    case FILE_PATH2: return take_text(record, &out->has_path2, &out->path2);
    case FILE_FLAGS: return take_number(record, &seen_once[0], &out->flags);
    case FILE_OFFSET: return take_number(record, &seen_once[1], &out->offset);
    case FILE_LENGTH: return take_number(record, &out->has_length, &out->length);
    case FILE_MODE: return take_number(record, &out->has_mode, &out->mode);
    case FILE_SIZE: return take_number(record, &out->has_size, &out->size);
    case FILE_CREDIT: return take_number(record, &seen_once[2], &out->credit);
    case FILE_MAX_ITEMS: return take_number(record, &out->has_max_items, &out->max_items);
    case FILE_BUDGET: return take_number(record, &out->has_budget, &out->budget);
    case FILE_MAX_DEPTH: return take_number(record, &out->has_max_depth, &out->max_depth);
    case FILE_MAX_LINE_BYTES: return take_number(record, &out->has_max_line_bytes, &out->max_line_bytes);
    case FILE_PATTERN: return take_pattern(record, out->patterns, &out->pattern_count);
    case FILE_INCLUDE: return take_pattern(record, out->includes, &out->include_count);
    case FILE_NAME: return !has_nul(record);
    case FILE_SHA256:
        if (out->has_sha256 || record->length != SHA256_BYTES)
            return false;
        out->has_sha256 = true;
        out->sha256 = record->value;
        return true;
    default: return true;
    }
}

/* For operations on a directory, an absent path means the workspace. */
static bool file_complete(const struct file_request *request)
{
    switch (request->op) {
    case OP_READ:
    case OP_REMOVE:
    case OP_MKDIR: return request->has_path;
    case OP_WRITE: return request->has_path && request->has_size;
    case OP_MOVE: return request->has_path && request->has_path2;
    case OP_GLOB: return request->pattern_count > 0;
    case OP_GREP: return request->pattern_count == 1;
    default: return true;
    }
}

enum fail file_request_parse(const uint8_t *payload, size_t length, struct file_request *out)
{
    memset(out, 0, sizeof *out);
    out->path.at = out->path2.at = "";
    struct record_reader reader = {.at = payload, .left = length};
    struct record record;
    uint64_t op = 0;
    bool op_seen = false, seen_once[3] = {false};
    while (record_next(&reader, &record))
        if (!file_take(&record, out, &op, &op_seen, seen_once))
            return BAD_REQUEST;
    if (reader.malformed || op < OP_READ || op > OP_PACK)
        return BAD_REQUEST;
    out->op = (enum file_op)op;
    return file_complete(out) ? OK : BAD_REQUEST;
}
