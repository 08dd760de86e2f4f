#include "relay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptors.h"

/* Each connection takes two descriptors, of at least 512 that a profile gives, and CHUNK bytes for each direction that waits. */
enum { CONNECTIONS_MAX = 128, CHUNK = 128 * 1024 };

/* One end of a connection, and the bytes that wait to be written to it. */
struct side {
    int fd;
    bool ended; /* it sends no more bytes */
    uint8_t *waiting;
    size_t at, length;
};
struct connection {
    struct side side[2];
};

static struct connection connections[CONNECTIONS_MAX];
static size_t count;
static uint8_t chunk[CHUNK];

static bool would_block(void)
{
    return errno == EAGAIN || errno == EINTR;
}

static void close_connection(size_t index)
{
    for (int i = 0; i < 2; i++) {
        close(connections[index].side[i].fd);
        free(connections[index].side[i].waiting);
    }
    connections[index] = connections[--count];
}

static void accept_one(int listener, const struct sockaddr_un *worker)
{
    int inside = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (inside < 0)
        return;
    int outside = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (outside >= 0 && connect(outside, (const struct sockaddr *)worker, sizeof *worker) == 0) {
        connections[count++] = (struct connection){.side = {{.fd = inside}, {.fd = outside}}};
        return;
    }
    close(inside);
    if (outside >= 0)
        close(outside);
}

/* Writes the chunk, and keeps the bytes that the other end does not take now. */
static bool give(struct side *to, size_t length)
{
    ssize_t written = send(to->fd, chunk, length, MSG_NOSIGNAL);
    if (written < 0 && !would_block())
        return false;
    size_t done = written < 0 ? 0 : (size_t)written;
    if (done == length)
        return true;
    to->waiting = malloc(length - done);
    if (to->waiting == NULL)
        return false;
    memcpy(to->waiting, chunk + done, length - done);
    to->at = 0;
    to->length = length - done;
    return true;
}

static bool take(struct side *from, struct side *to)
{
    ssize_t got = read(from->fd, chunk, sizeof chunk);
    if (got < 0)
        return would_block();
    if (got > 0)
        return give(to, (size_t)got);
    from->ended = true;
    shutdown(to->fd, SHUT_WR);
    return true;
}

static bool flush(struct side *to)
{
    ssize_t written = send(to->fd, to->waiting + to->at, to->length - to->at, MSG_NOSIGNAL);
    if (written < 0)
        return would_block();
    to->at += (size_t)written;
    if (to->at < to->length)
        return true;
    free(to->waiting);
    to->waiting = NULL;
    return true;
}

/* False when the connection is over. */
static bool serve(struct connection *connection, const struct pollfd polled[2])
{
    for (int i = 0; i < 2; i++) {
        struct side *side = &connection->side[i], *other = &connection->side[!i];
        if (polled[i].revents == 0)
            continue;
        if (side->waiting != NULL && !flush(side))
            return false;
        if (!side->ended && other->waiting == NULL && (polled[i].revents & ~POLLOUT) != 0 && !take(side, other))
            return false;
    }
    return !connection->side[0].ended || !connection->side[1].ended;
}

static struct pollfd wish(const struct side *side, const struct side *other)
{
    short events = (short)((!side->ended && other->waiting == NULL ? POLLIN : 0) | (side->waiting != NULL ? POLLOUT : 0));
    /* A descriptor without events would report its end again and again. */
    return (struct pollfd){.fd = events == 0 ? -1 : side->fd, .events = events};
}

noreturn void relay_run(int listener, const struct sockaddr_un *worker)
{
    static struct pollfd polled[1 + 2 * CONNECTIONS_MAX];
    struct sockaddr_un address = *worker;
    keep_only((int[]){listener}, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        polled[0] = (struct pollfd){.fd = count < CONNECTIONS_MAX ? listener : -1, .events = POLLIN};
        for (size_t i = 0; i < count; i++)
            for (int j = 0; j < 2; j++)
                polled[1 + 2 * i + (size_t)j] = wish(&connections[i].side[j], &connections[i].side[!j]);
        if (poll(polled, (nfds_t)(1 + 2 * count), -1) < 0 && errno != EINTR)
            _exit(1);
        /* Backwards: the last connection, which was served already, takes the place of a closed one. */
        for (size_t i = count; i-- > 0;)
            if (!serve(&connections[i], &polled[1 + 2 * i]))
                close_connection(i);
        if (polled[0].revents != 0)
            accept_one(listener, &address);
    }
}
