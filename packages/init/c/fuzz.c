/*
 * fuzz-frames SEED ITERATIONS CORPUS: mutates the corpus's byte streams and feeds them, in pieces of random size, to the
 * decoder and every payload to every parser. The sanitizers judge memory; this file judges one promise: whatever came before,
 * the zeros of a resynchronisation and then a PING make that PING the last frame seen.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "fail.h"
#include "frame.h"
#include "fuzz-input.h"
#include "glob.h"
#include "parts.h"
#include "path.h"
#include "record.h"
#include "request.h"

enum { CORPUS_MAX = 256, STREAM_MAX = 1 << 20 };

static struct {
    uint8_t *bytes;
    size_t length;
} corpus[CORPUS_MAX];
static size_t corpus_count;
static uint64_t frames_seen, requests_seen;

static void load(const char *dir)
{
    DIR *entries = opendir(dir);
    if (entries == NULL) {
        perror(dir);
        exit(2);
    }
    for (struct dirent *entry; (entry = readdir(entries)) != NULL && corpus_count < CORPUS_MAX;) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (file == NULL)
            continue;
        uint8_t *bytes = malloc(STREAM_MAX);
        corpus[corpus_count].length = fread(bytes, 1, STREAM_MAX / 2, file);
        corpus[corpus_count++].bytes = bytes;
        fclose(file);
    }
    closedir(entries);
    if (corpus_count == 0) {
        fprintf(stderr, "empty corpus\n");
        exit(2);
    }
}

static size_t mutate(uint8_t *bytes, size_t length)
{
    static const uint8_t special[] = {0, 1, 4, 8, 0x7F, 0x80, 0xBE, 0x27, 0xE0, 0xD5, 0xFF};
    for (size_t times = fuzz_below(8); times > 0 && length > 0; times--) {
        size_t at = fuzz_below(length), span = fuzz_below(length - at < 64 ? length - at : 64);
        switch (fuzz_below(7)) {
        case 0: bytes[at] = (uint8_t)fuzz_random(); break;
        case 1: bytes[at] ^= (uint8_t)(1u << fuzz_below(8)); break;
        case 2: bytes[at] = special[fuzz_below(sizeof special)]; break;
        case 3: /* a length field is what an attacker would reach for */
            if (length - at >= 4)
                put_u32(bytes + at, (uint32_t)(fuzz_below(2) ? fuzz_random() : fuzz_below(70000)));
            break;
        case 4:
            memmove(bytes + at, bytes + at + span, length - at - span);
            length -= span;
            break;
        case 5:
            if (length + span <= STREAM_MAX / 2) {
                memmove(bytes + at + span, bytes + at, length - at);
                length += span;
            }
            break;
        case 6: length = at; break;
        }
    }
    return length;
}

/* In memory of exactly its size, so that a read past its end is seen. */
static void parse(const struct frame *frame)
{
    uint8_t *copy = malloc(frame->length + 1);
    if (frame->length > 0)
        memcpy(copy, frame->payload, frame->length);
    uint64_t number;
    single_number(copy, frame->length, CREDIT_BYTES, &number);
    struct file_request file;
    struct clean_path path;
    if (file_request_parse(copy, frame->length, &file) == OK) {
        requests_seen++;
        if (path_clean(file.path.at, file.path.length, &path) == OK && strstr(path.text, "..") == path.text &&
            (path.text[2] == '/' || path.text[2] == 0))
            abort();
        struct glob_set globs = {.dot = (file.flags & GLOB_DOT) != 0};
        for (size_t i = 0; i < file.pattern_count; i++)
            glob_add(&globs, file.patterns[i].at, file.patterns[i].length);
        glob_matches(&globs, "src/deep/er/file.test.c", false);
        glob_leads_below(&globs, "src/deep");
        glob_free(&globs);
    }
    struct exec_request exec;
    if (exec_request_parse(copy, frame->length, &exec) == OK) {
        requests_seen++;
        char **envp, **argv = exec_request_vectors(copy, frame->length, &exec, &envp);
        for (char **at = argv; *at != NULL; at++)
            number += strlen(*at);
        for (char **at = envp; *at != NULL; at++)
            number += strlen(*at);
        free(argv);
    }
    free(copy);
}

static void assemble(const struct frame *frame)
{
    size_t whole;
    if (frame->type == T_PART)
        parts_add(frame->channel, frame->payload, frame->length);
    if (frame->type != T_EXEC && frame->type != T_FILE)
        return;
    uint8_t *payload = parts_finish(frame->channel, frame->payload, frame->length, &whole);
    if (payload == NULL)
        return;
    struct exec_request exec;
    struct file_request file;
    exec_request_parse(payload, whole, &exec);
    file_request_parse(payload, whole, &file);
    payload[whole] = 0;
}

static void feed(struct decoder *decoder, const uint8_t *bytes, size_t length, struct frame *last, uint8_t last_payload[8])
{
    while (length > 0) {
        uint8_t *at;
        size_t room = decoder_room(decoder, &at);
        if (room == 0)
            abort();
        size_t piece = 1 + fuzz_below(fuzz_below(4) == 0 ? 16 : 90000);
        piece = min_size(min_size(piece, room), length);
        memcpy(at, bytes, piece);
        decoder_filled(decoder, piece);
        bytes += piece;
        length -= piece;
        struct frame frame;
        while (decoder_next(decoder, &frame)) {
            if (frame.length > FRAME_PAYLOAD_MAX)
                abort();
            frames_seen++;
            parse(&frame);
            assemble(&frame);
            *last = frame;
            memset(last_payload, 0, 8);
            if (frame.length > 0)
                memcpy(last_payload, frame.payload, min_size(frame.length, 8));
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    fuzz_seed(argv[1]);
    uint64_t iterations = strtoull(argv[2], NULL, 10);
    load(argv[3]);
    path_open_root("/");
    struct decoder decoder = {.buffer = malloc(DECODER_BYTES)};
    uint8_t *stream = malloc(STREAM_MAX), ping[FRAME_HEADER + 8 + FRAME_TRAILER];
    if (!parts_open() || decoder.buffer == NULL || stream == NULL)
        return 2;
    for (uint64_t i = 0; i < iterations; i++) {
        size_t pick = fuzz_below(corpus_count), length = corpus[pick].length;
        memcpy(stream, corpus[pick].bytes, length);
        length = mutate(stream, length);
        memset(stream + length, 0, FRAME_MAX);
        length += FRAME_MAX;
        frame_begin(ping, T_PING, 0, i, 8);
        put_u64(ping + FRAME_HEADER, i);
        frame_end(ping + FRAME_HEADER + 8, 8);
        memcpy(stream + length, ping, sizeof ping);
        length += sizeof ping;
        struct frame last = {.type = 0};
        uint8_t last_payload[8] = {0};
        feed(&decoder, stream, length, &last, last_payload);
        if (last.type != T_PING || last.epoch != i || get_u64(last_payload) != i) {
            fprintf(stderr, "seed %s iteration %llu: not resynchronised\n", argv[1], (unsigned long long)i);
            return 1;
        }
    }
    printf("%llu frames, %llu requests\n", (unsigned long long)frames_seen, (unsigned long long)requests_seen);
    free(decoder.buffer);
    free(stream);
    for (size_t i = 0; i < corpus_count; i++)
        free(corpus[i].bytes);
    return 0;
}
