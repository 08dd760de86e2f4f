/* One file operation, as it runs in a keeper: the request, its pipes, and the answer being put together. */
#ifndef BERTH_JOB_H
#define BERTH_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "record.h"
#include "request.h"
#include "sha256.h"

struct job {
    const struct file_request *request;
    const uint8_t *payload; /* of the request: names of PACK are read from it, as there is no bound on their number */
    size_t payload_length;
    int in;  /* STDIN's bytes, -1 without */
    int out; /* DATA's or ITEMS' bytes, -1 without */
    struct record_writer done;
    int error;            /* errno of a failure, 0 without */
    const char *message; /* a more exact sentence than the code's own, or NULL */
};

enum {
    RESULT_MAX = 8192, /* the type and the payload of DONE or FAIL; the longest holds a symlink's target */
    CHUNK = 128 * 1024,
};

/* Runs the operation of a FILE payload. Writes the type and payload of the answer to `result`, and returns its length. Leaves no descriptor
 * open and no memory allocated after read, write, stat, remove, move, mkdir and usage; after the others the keeper ends. */
size_t job_run(const uint8_t *payload, size_t length, int in, int out, uint8_t result[RESULT_MAX]);

enum fail file_read(struct job *job);
enum fail file_write(struct job *job);
enum fail file_stat(struct job *job);
enum fail file_list(struct job *job);
enum fail file_remove(struct job *job);
enum fail file_move(struct job *job);
enum fail file_mkdir(struct job *job);
enum fail file_glob(struct job *job);
enum fail file_grep(struct job *job);
enum fail file_usage(struct job *job);
enum fail file_unpack(struct job *job);
enum fail file_pack(struct job *job);

/* Keeps the errno for FAIL and translates it. */
enum fail failed(struct job *job, int error);

/* Blocks until all is written. False when the reader is gone. */
bool write_all(int fd, const void *bytes, size_t length);

/* Opens a file only if it is a regular one. Does not wait for the other end of a FIFO. */
enum fail open_regular(struct job *job, int dir, const char *name, int flags, int *fd, struct stat *status);

/* Hashes a regular file from its beginning, at most `limit` bytes of it. */
enum fail hash_file(struct job *job, int fd, uint64_t limit, uint8_t out[32]);

char type_letter(mode_t mode);
uint64_t mtime_ms(const struct stat *status);

#endif
