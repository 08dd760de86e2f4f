#include "link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bytes.h"
#include "outbox.h"
#include "record.h"

enum state { LINK_NONE, LINK_ASKED, LINK_PROVEN, LINK_CARRYING };

static const char *directory;
static enum state state;
static uint8_t wanted_proof[NONCE_BYTES];
static struct source source = {.fd = -1, .origin = FROM_LINK};

struct offer {
    char name[LINK_NAME_MAX + 1];
    const uint8_t *init_proof, *worker_proof;
};

void link_directory(const char *path)
{
    directory = path;
}

bool link_possible(void)
{
    return directory != NULL;
}

const char *link_path(void)
{
    return directory;
}

struct source *link_source(void)
{
    return &source;
}

/* Accepts only hexadecimal digits, so that the name cannot lead out of the directory. */
static bool take_name(const struct record *record, char name[LINK_NAME_MAX + 1])
{
    if (record->length == 0 || record->length > LINK_NAME_MAX)
        return false;
    for (size_t i = 0; i < record->length; i++)
        if (strchr("0123456789abcdef", record->value[i]) == NULL || record->value[i] == 0)
            return false;
    memcpy(name, record->value, record->length);
    name[record->length] = 0;
    return true;
}

static bool parse(const uint8_t *payload, size_t length, struct offer *offer)
{
    struct record_reader reader = {.at = payload, .left = length};
    struct record record;
    memset(offer, 0, sizeof *offer);
    while (record_next(&reader, &record)) {
        if (record.tag == LINK_NAME && !take_name(&record, offer->name))
            return false;
        if ((record.tag == LINK_INIT_PROOF || record.tag == LINK_WORKER_PROOF) && record.length != NONCE_BYTES)
            return false;
        if (record.tag == LINK_INIT_PROOF)
            offer->init_proof = record.value;
        if (record.tag == LINK_WORKER_PROOF)
            offer->worker_proof = record.value;
    }
    return !reader.malformed && offer->name[0] != 0 && offer->init_proof != NULL && offer->worker_proof != NULL;
}

/* The pid of a process outside of this pid namespace reads 0. So a listener with pid 0 is outside of the sandbox. */
static bool from_outside(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (getpid() != 1 || peer.pid == 0);
}

static bool send_proof(int fd, const uint8_t *proof)
{
    uint8_t frame[FRAME_HEADER + 32 + FRAME_TRAILER];
    struct record_writer writer = {.buffer = frame + FRAME_HEADER, .capacity = 32};
    write_bytes(&writer, LINKED_PROOF, proof, NONCE_BYTES);
    frame_begin(frame, T_LINKED, 0, outbox_epoch(), writer.length);
    frame_end(frame + FRAME_HEADER + writer.length, writer.length);
    size_t length = FRAME_HEADER + writer.length + FRAME_TRAILER;
    return write(fd, frame, length) == (ssize_t)length;
}

/* Returns an errno. A unix socket connects at once or not at all. */
static int join(const struct offer *offer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", directory, offer->name);
    if (length < 0 || (size_t)length >= sizeof address.sun_path)
        return ENAMETOOLONG;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    int error = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
    if (error == 0 && !from_outside(fd))
        error = EPERM;
    if (error == 0 && !send_proof(fd, offer->init_proof))
        error = EPIPE;
    if (error == 0 && !source_begin(&source, fd))
        error = ENOMEM;
    if (error != 0)
        close(fd);
    return error;
}

void link_offer(const uint8_t *payload, size_t length)
{
    struct offer offer;
    int error = EINVAL;
    if (state != LINK_NONE)
        error = EISCONN;
    else if (directory == NULL)
        error = ENOTSUP;
    else if (parse(payload, length, &offer))
        error = join(&offer);
    if (error == 0) {
        memcpy(wanted_proof, offer.worker_proof, NONCE_BYTES);
        state = LINK_ASKED;
        return;
    }
    uint8_t answer[16];
    struct record_writer writer = {.buffer = answer, .capacity = sizeof answer};
    write_number(&writer, LINKED_ERRNO, (uint64_t)error);
    outbox_send(T_LINKED, 0, answer, writer.length);
}

static bool is_proof(const struct frame *frame)
{
    struct record_reader reader = {.at = frame->payload, .left = frame->length};
    struct record record;
    return frame->type == T_LINK_PROOF && record_next(&reader, &record) && record.tag == LINK_WORKER_PROOF &&
           record.length == NONCE_BYTES && memcmp(record.value, wanted_proof, NONCE_BYTES) == 0;
}

bool link_admits(const struct frame *frame)
{
    if (state != LINK_ASKED)
        return frame->type != T_HELLO && frame->type != T_LINK;
    if (is_proof(frame))
        state = LINK_PROVEN;
    else
        link_close();
    return false;
}

int link_output(int otherwise)
{
    /* Switch only while the outbox is empty: a frame in it may have been sent to stdout in part. */
    if (state == LINK_PROVEN && outbox_waiting() == 0) {
        state = LINK_CARRYING;
        outbox_send(T_LINKED, 0, NULL, 0);
    }
    return state == LINK_CARRYING ? source.fd : otherwise;
}

void link_close(void)
{
    /* A part of the frame may have been sent, and the reader of stdout could not find the next frame. */
    if (state == LINK_CARRYING)
        outbox_forget();
    state = LINK_NONE;
    source_end(&source);
}
