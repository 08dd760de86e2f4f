#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bytes.h"
#include "clock.h"
#include "descriptors.h"
#include "hidden.h"
#include "job.h"
#include "outbox.h"
#include "pool.h"
#include "record.h"
#include "request.h"
#include "stream.h"

/* One item is far smaller: two paths of 4 KiB, or a path and a line of at most 32 KiB. */
enum { STAGING = FRAME_PAYLOAD_MAX };

static const uint64_t last_moment_us = 100 * MS;

static bool sends_items(enum file_op op)
{
    return op == OP_LIST || op == OP_GLOB || op == OP_GREP || op == OP_UNPACK;
}

/* Operations whose keeper ends after them, which frees their memory and descriptors. Measuring is none of them: a new keeper needs a fork,
 * and could not be had while a command uses up the processes. */
static bool used_once(enum file_op op)
{
    return sends_items(op) || op == OP_PACK;
}

/* Returns an errno; on failure nothing is left open. */
static int launch(struct channel *channel, enum file_op op, uint8_t *payload, size_t length)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    int error = 0;
    if (op == OP_WRITE || op == OP_UNPACK)
        error = open_pipe(in, 1, PIPE_LARGE);
    if (op == OP_READ || op == OP_PACK || sends_items(op))
        error = open_pipe(out, 0, PIPE_LARGE);
    struct order order = {
        .type = T_FILE, .payload = payload, .length = length, .fds = {in[0], out[1], -1, -1, -1}};
    if (error == 0)
        error = pool_start(&order, &channel->child, &channel->message);
    channel_close_fd(&in[0]);
    channel_close_fd(&out[1]);
    if (error != 0) {
        channel_close_fd(&in[1]);
        channel_close_fd(&out[0]);
        return error;
    }
    channel->feed.fd = in[1];
    channel->out.fd = out[0];
    return 0;
}

void file_start(uint32_t number, uint8_t *payload, size_t length)
{
    struct file_request request;
    enum fail fail = file_request_parse(payload, length, &request);
    struct channel *channel = fail == OK ? channel_open(number, CHANNEL_FILE, &fail) : NULL;
    if (channel == NULL) {
        send_fail(number, fail, NULL, 0);
        return;
    }
    channel->credit = request.credit;
    channel->kill_at = NEVER;
    channel->used_once = used_once(request.op);
    channel->result = malloc(RESULT_MAX);
    if (sends_items(request.op)) {
        channel->out.type = T_ITEMS;
        channel->staging = malloc(STAGING);
    }
    bool memory = channel->result != NULL && (channel->staging != NULL || !sends_items(request.op));
    int error = memory ? launch(channel, request.op, payload, length) : ENOMEM;
    if (error != 0)
        channel_fail(channel, FORK_FAILED, NULL, error);
}

static void take_result(struct channel *channel)
{
    ssize_t got = recv(channel->message, channel->result, RESULT_MAX, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    channel->over = true;
    channel->result_length = got > 0 ? (size_t)got : 0;
}

/* Sends as many whole items as the credit covers, in one frame. An incomplete item waits for its rest. */
static void send_staged(struct channel *channel)
{
    size_t ready = 0;
    while (channel->staged - ready >= 4) {
        size_t item = 4 + (size_t)get_u32(channel->staging + ready);
        if (item > channel->staged - ready || ready + item > channel->credit)
            break;
        ready += item;
    }
    if (ready == 0)
        return;
    outbox_send(T_ITEMS, channel->number, channel->staging, ready);
    channel->credit -= ready;
    channel->staged -= ready;
    memmove(channel->staging, channel->staging + ready, channel->staged);
}

static void move_items(struct channel *channel, bool out_ready)
{
    if (outbox_waiting() >= OUTBOX_GATE)
        return;
    send_staged(channel);
    if (!out_ready || channel->out.fd < 0 || channel->staged == STAGING)
        return;
    ssize_t got = read(channel->out.fd, channel->staging + channel->staged, STAGING - channel->staged);
    if (got > 0)
        channel->staged += (size_t)got;
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        channel_close_fd(&channel->out.fd);
    send_staged(channel);
}

static bool reports_hidden(const struct channel *channel)
{
    struct record_reader reader = {.at = channel->result + 1, .left = channel->result_length - 1};
    struct record record;
    uint64_t hidden = 0;
    while (record_next(&reader, &record))
        if (record.tag == DONE_HIDDEN)
            record_number(&record, &hidden);
    return hidden > 0;
}

static void answer(struct channel *channel, uint64_t now)
{
    bool whole = channel->result_length > 0;
    if (whole && !channel->used_once && !channel->killed)
        pool_give(&channel->child, &channel->message);
    uint8_t type = whole ? channel->result[0] : T_FAIL;
    if (channel->fail_instead != OK)
        channel_fail(channel, channel->fail_instead, NULL, 0);
    else if (type == T_FAIL && (!whole || channel->killed))
        channel_fail(channel, INTERRUPTED, NULL, 0);
    else {
        if (type == T_DONE && reports_hidden(channel))
            hidden_suspected(now);
        outbox_send(type, channel->number, channel->result + 1, channel->result_length - 1);
        channel_answered(channel);
    }
}

void file_service(struct channel *channel, bool message_ready, bool out_ready, uint64_t now)
{
    if (message_ready && !channel->over)
        take_result(channel);
    /* The keeper sends its result last. So all output is in the pipe by now, although poll may not have shown it. */
    out_ready = out_ready || channel->over;
    if (channel->staging != NULL && !channel->orphan)
        move_items(channel, out_ready);
    else if (out_ready)
        tap_read(channel, &channel->out, false);
    if (channel->over)
        tap_close_if_ended(&channel->out);
    if (now >= channel->kill_at) {
        if (channel->child > 1)
            kill(channel->child, SIGKILL);
        channel->kill_at = NEVER;
    }
    if (channel->over && channel->out.fd < 0 && channel->staged == 0)
        answer(channel, now);
}

void file_kill(struct channel *channel, uint64_t grace_ms, uint64_t now)
{
    channel->killed = true;
    uint64_t at = deadline_after(now, grace_ms);
    channel->kill_at = min_u64(channel->kill_at, min_u64(at, now + last_moment_us));
    channel_close_fd(&channel->feed.fd);
    channel_close_fd(&channel->out.fd);
    channel->staged = 0;
}

void file_keeper_reaped(struct channel *channel)
{
    channel->child = 0;
    channel_free_if_done(channel);
}

void file_orphan(struct channel *channel)
{
    channel_close_fd(&channel->feed.fd);
    channel->staged = 0;
}
