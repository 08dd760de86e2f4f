#include "stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bytes.h"
#include "outbox.h"

/* Credit is returned in portions of this size: fewer frames, and the worker still has three quarters of the window. */
enum { CREDIT_STEP = STDIN_WINDOW / 4 };

static void give_back(struct channel *channel, size_t bytes)
{
    struct feed *feed = &channel->feed;
    feed->consumed += bytes;
    if (feed->consumed >= CREDIT_STEP && !channel->orphan) {
        outbox_send_number(T_STDIN_CREDIT, channel->number, CREDIT_BYTES, feed->consumed);
        feed->consumed = 0;
    }
}

bool feed_push(struct channel *channel, const uint8_t *bytes, size_t length)
{
    struct feed *feed = &channel->feed;
    if (feed->ended || length == 0)
        return true;
    if (feed->fd < 0) {
        give_back(channel, length); /* the reader closed its end: dropped, so that the worker can send the rest */
        return true;
    }
    if (length > STDIN_WINDOW - (feed->tail - feed->head) - feed->consumed)
        return false;
    if (feed->head == feed->tail) {
        feed->head = feed->tail = 0;
        ssize_t wrote = write(feed->fd, bytes, length);
        if (wrote > 0) {
            give_back(channel, (size_t)wrote);
            bytes += wrote;
            length -= (size_t)wrote;
        }
        if (length == 0)
            return true;
    }
    if (feed->buffer == NULL && (feed->buffer = malloc(STDIN_WINDOW)) == NULL)
        return false;
    if (STDIN_WINDOW - feed->tail < length) {
        memmove(feed->buffer, feed->buffer + feed->head, feed->tail - feed->head);
        feed->tail -= feed->head;
        feed->head = 0;
    }
    memcpy(feed->buffer + feed->tail, bytes, length);
    feed->tail += length;
    return true;
}

static void close_if_drained(struct feed *feed)
{
    if (feed->ended && feed->head == feed->tail)
        channel_close_fd(&feed->fd);
}

void feed_end(struct channel *channel)
{
    channel->feed.ended = true;
    close_if_drained(&channel->feed);
}

bool feed_wants_write(const struct channel *channel)
{
    return channel->feed.fd >= 0 && channel->feed.head < channel->feed.tail;
}

void feed_write(struct channel *channel)
{
    struct feed *feed = &channel->feed;
    while (feed_wants_write(channel)) {
        ssize_t wrote = write(feed->fd, feed->buffer + feed->head, feed->tail - feed->head);
        if (wrote > 0) {
            feed->head += (size_t)wrote;
            give_back(channel, (size_t)wrote);
        } else if (wrote < 0 && errno == EPIPE) {
            give_back(channel, feed->tail - feed->head);
            feed->head = feed->tail;
            channel_close_fd(&feed->fd);
        } else {
            break;
        }
    }
    close_if_drained(feed);
}

static bool thrown_away(const struct channel *channel, bool dropping)
{
    return channel->orphan || (dropping && channel->credit == 0);
}

bool tap_wanted(const struct channel *channel, bool dropping)
{
    return thrown_away(channel, dropping) || (channel->credit > 0 && outbox_waiting() < OUTBOX_GATE);
}

void tap_read(struct channel *channel, struct tap *tap, bool dropping)
{
    if (tap->fd < 0 || !tap_wanted(channel, dropping))
        return;
    static uint8_t trash[65536];
    bool drop = thrown_away(channel, dropping);
    size_t most = drop ? sizeof trash : (size_t)min_u64(channel->credit, FRAME_PAYLOAD_MAX);
    ssize_t got = read(tap->fd, drop ? trash : outbox_reserve(most), most);
    if (got > 0) {
        if (!drop) {
            outbox_commit(tap->type, channel->number, (size_t)got);
            channel->credit -= (uint64_t)got;
        }
        tap->promised -= min_size(tap->promised, (size_t)got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        channel_close_fd(&tap->fd);
        tap->promised = 0;
    } else {
        tap->promised = 0;
    }
}

size_t tap_waiting(const struct tap *tap)
{
    int waiting = 0;
    return tap->fd >= 0 && ioctl(tap->fd, FIONREAD, &waiting) == 0 && waiting > 0 ? (size_t)waiting : 0;
}

void tap_close_if_ended(struct tap *tap)
{
    struct pollfd slot = {.fd = tap->fd, .events = POLLIN};
    if (tap->fd >= 0 && poll(&slot, 1, 0) == 1 && (slot.revents & (POLLIN | POLLHUP)) == POLLHUP)
        channel_close_fd(&tap->fd);
}
